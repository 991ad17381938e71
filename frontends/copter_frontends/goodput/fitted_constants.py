"""All constants of the applications' models; docs/method/goodput.md gives their sources.

Times are in seconds, batch sizes and noise scales in samples.
"""

from __future__ import annotations

# Application: (first batch size M0, largest batch size, scale-invariant iterations of a full run at M0, smallest local
# batch size, seconds of a restart, seconds of a restart that the policy assumes, slowdown).
TRAINING: dict[str, tuple[int, int, int, int, float, float, float]] = {
    "cifar10": (128, 4096, 39_063, 32, 50.0, 30.0, 1.8),
    "bert": (12, 384, 14_774, 4, 120.0, 120.0, 1.2),
    "deepspeech2": (20, 640, 28_536, 10, 25.0, 25.0, 1.2),
    "yolov3": (8, 512, 103_444, 4, 80.0, 45.0, 1.2),
    "imagenet": (200, 12_800, 576_526, 20, 250.0, 250.0, 1.2),
    "ncf": (256, 32_768, 194_174, 32, 15.0, 30.0, 1.5),
}

# Epochs of a full training run.
EPOCHS: dict[str, int] = {"cifar10": 100, "bert": 2, "deepspeech2": 80, "yolov3": 50, "imagenet": 90, "ncf": 10}

# (Application, GPU type): (alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma). The quad was never profiled on
# two nodes: its alpha_n and beta_n here are the fit's lower limit, and are raised when the table is read.
FITTED: dict[tuple[str, str], tuple[float, ...]] = {
    ("cifar10", "t4"): (0.0174714, 0.000703748, 0.126805, 0.00263001, 0.0338603, 0.00177102, 2.29174),
    ("cifar10", "rtx"): (0.036051, 0.00025754, 0.0861251, 0.00152017, 0.0638067, 0.00455026, 2.91619),
    ("cifar10", "quad"): (0.0267157, 0.000249997, 1e-8, 1e-8, 0.0465392, 0.00916134, 3.33137),
    ("cifar10", "v100"): (0.0732409, 0.000135447, 0.0351925, 0.00166642, 0.0249064, 0.00158329, 1.24953),
    ("cifar10", "a100"): (0.0245509, 8.7739e-5, 0.0121583, 0.000859227, 0.0122032, 0.00151656, 2.50769),
    ("bert", "t4"): (0.176108, 0.0585059, 1.39813, 0.00854455, 0.263208, 0.0130088, 1.83564),
    ("bert", "rtx"): (0.160897, 0.022543, 0.559697, 0.0215858, 0.341339, 0.0669494, 1.87607),
    ("bert", "quad"): (0.115719, 0.0218599, 1e-8, 1e-8, 0.356594, 0.0680087, 2.38657),
    ("bert", "v100"): (0.117941, 0.0203933, 0.260575, 0.0251517, 0.208986, 0.105531, 1.82389),
    ("bert", "a100"): (0.0981562, 0.00472834, 0.0299193, 0.00373157, 0.029615, 0.00616531, 1.60101),
    ("deepspeech2", "t4"): (0.307412, 0.0235636, 0.504236, 0.0101698, 0.119177, 0.00541123, 1.49728),
    ("deepspeech2", "rtx"): (0.346718, 0.013016, 0.0713661, 0.0189091, 0.102436, 0.0296619, 1.3031),
    ("deepspeech2", "quad"): (0.179657, 0.0162657, 1e-8, 1e-8, 0.332565, 0.0353084, 3.13359),
    ("deepspeech2", "v100"): (0.332765, 0.0105802, 0.0605539, 0.0220706, 0.147504, 0.0691283, 1.5361),
    ("deepspeech2", "a100"): (0.43004, 0.0132168, 0.168711, 0.0125901, 0.128798, 0.0141527, 1.6146),
    ("yolov3", "t4"): (0.193093, 0.0264163, 0.768223, 0.0104069, 0.12333, 0.0244968, 1.17234),
    ("yolov3", "rtx"): (0.360712, 0.0155817, 0.308389, 0.00862661, 0.196118, 0.0176572, 1.0),
    ("yolov3", "quad"): (0.166999, 0.0117974, 1e-8, 1e-8, 0.182652, 0.11181, 1.62252),
    ("yolov3", "v100"): (0.160069, 0.0158568, 0.0430094, 0.0200076, 0.103939, 0.0597966, 1.0),
    ("yolov3", "a100"): (0.32723, 0.01926, 0.0435533, 0.0172582, 0.0840197, 0.0261059, 1.07773),
    ("imagenet", "t4"): (0.0644781, 0.00449439, 0.318292, 0.00626887, 0.0749456, 5.56867e-6, 2.48755),
    ("imagenet", "rtx"): (0.121647, 0.00185642, 0.170703, 0.00646579, 0.0959141, 0.0224606, 2.11827),
    ("imagenet", "quad"): (0.0969473, 0.00188491, 1e-8, 1e-8, 0.0813955, 0.0326524, 2.49974),
    ("imagenet", "v100"): (0.0974337, 0.00134269, 0.0579829, 0.0234441, 0.0715448, 0.0173762, 1.0),
    ("imagenet", "a100"): (0.0947809, 0.000845091, 0.00667853, 0.0012185, 0.00995516, 0.00135646, 1.0),
    ("ncf", "t4"): (0.00711668, 5.75862e-7, 0.0145106, 0.000547139, 0.00287959, 0.000321306, 1.001),
    ("ncf", "rtx"): (0.0143707, 9.90796e-08, 0.0103722, 0.000537862, 0.00470307, 0.00141645, 1.06927),
    ("ncf", "quad"): (0.0114715, 1.19776e-7, 1e-8, 1e-8, 0.00438135, 0.00364713, 1.09005),
    ("ncf", "v100"): (0.0867488, 4.56531e-6, 0.0393103, 0.0184508, 0.0854208, 0.019522, 2.62952),
    ("ncf", "a100"): (0.00822279, 1.17796e-7, 0.00141214, 0.000167058, 0.00181201, 0.000287187, 1.17845),
}

# Largest local batch that fits a GPU's memory. The P100 (16 GB) has the T4's value (16 GB), the K80 (12 GB per die)
# that of the RTX 2080Ti (11 GB).
MAX_LOCAL_BATCH_SIZE: dict[str, dict[str, int]] = {
    "cifar10": {"t4": 1024, "rtx": 1024, "quad": 2048, "v100": 3072, "a100": 4096, "p100": 1024, "k80": 1024},
    "bert": {"t4": 12, "rtx": 12, "quad": 24, "v100": 36, "a100": 48, "p100": 12, "k80": 12},
    "deepspeech2": {"t4": 80, "rtx": 57, "quad": 160, "v100": 240, "a100": 320, "p100": 80, "k80": 57},
    "yolov3": {"t4": 16, "rtx": 8, "quad": 16, "v100": 24, "a100": 32, "p100": 16, "k80": 8},
    "imagenet": {"t4": 200, "rtx": 200, "quad": 400, "v100": 600, "a100": 800, "p100": 200, "k80": 200},
    "ncf": {"t4": 32768, "rtx": 32768, "quad": 32768, "v100": 32768, "a100": 32768, "p100": 32768, "k80": 32768},
}

# One-GPU throughput of the V100 divided by that of (the P100, the K80), in steps per second at the largest measured
# batch size, for the model family closest to the application.
V100_RATIO: dict[str, tuple[float, float]] = {
    "cifar10": (10.30026 / 7.722785, 10.30026 / 0.88558),  # ResNet-18, batch 256
    "bert": (5.446105 / 3.073535, 5.446105 / 0.9815827),  # Transformer, batch 128 (at 256 the V100 was short of memory)
    "deepspeech2": (28.23996 / 21.15753, 28.23996 / 6.054204),  # LM, batch 80: recurrent, like DeepSpeech2
    "yolov3": (2.496766 / 1.584352, 2.496766 / 0.3472237),  # ResNet-50, batch 128: also a deep convolutional network
    "imagenet": (2.496766 / 1.584352, 2.496766 / 0.3472237),  # ResNet-50, batch 128
    "ncf": (2.84151 / 5.548441, 2.84151 / 2.698783),  # Recommendation, batch 8192: here the V100 hosts were slower
}

# The hybrid-parallel model of thesis 3.5.3: GPUs of one replica, micro-batches (of one sample) per step, and the seven
# constants. Compute time is that of a micro-batch's forward pass through one stage; replicas take the place of GPUs.
GPT_STAGES: dict[str, int] = {"rtx": 8, "a100": 2}
GPT_MICROBATCHES = 48  # micro-batches of a pipeline's step (G15)
GPT: dict[str, tuple[float, ...]] = {
    "rtx": (1e-8, 0.099, 0.435, 0.1075, 0.435, 0.1075, 1.0),
    "a100": (1e-8, 0.144, 0.18001, 0.01667, 0.018, 0.00183, 1.0),
}
