"""The eight models of the paper's Table 2 with task times, and Table 3's switching times (hare.md, HR32, HR33,
HR35).
"""

from __future__ import annotations

from dataclasses import dataclass

from copter_frontends.vocabulary import InvalidJobError

REFERENCE_GBPS = 25.0  # network speed of the paper's testbed in Gbit/s


@dataclass(frozen=True, slots=True)
class HareModel:
    """A model of the paper's Table 2.

    Attributes
    ----------
    family : {"cv", "nlp", "speech", "rec"}
    default_ms, pipeswitch_ms, hare_ms : float
        Average switching times of Table 3 in milliseconds.
    default_share, pipeswitch_share, hare_share : float
        Share of switching in the time of switching and training, from Table 3.
    v100_s : float
        Seconds of a task on a V100, implied by Hare's row of Table 3: ms (1 - share) / share.
    speed : dict of GPU type to float
        Speed relative to a K80. The text about Figure 2 gives 2x on a T4 and 7x on a V100 for ResNet50, and about 2x on
        a V100 for GraphSAGE. The other values are assumptions in between.
    parameters_mb : float
        Size of the model in megabytes, which a synchronisation sends and receives, and a switch loads.
    """

    name: str
    family: str
    default_ms: float
    default_share: float
    pipeswitch_ms: float
    pipeswitch_share: float
    hare_ms: float
    hare_share: float
    speed: dict[str, float]
    parameters_mb: float

    @property
    def v100_s(self) -> float:
        """Seconds of a task on a V100."""
        return 1e-3 * self.hare_ms * (1.0 - self.hare_share) / self.hare_share

    def train_s(self, gpu_type: str, batch: float = 1.0) -> float:
        """Return the seconds of training of a task on a GPU type, at `batch` times the default batch size.

        Raises
        ------
        InvalidJobError
            If the model's speed on the type is not known.
        """
        if gpu_type not in self.speed:
            raise InvalidJobError(f"model {self.name!r}: no speed is known for {gpu_type!r}: {', '.join(self.speed)}")
        return self.v100_s * self.speed["v100"] / self.speed[gpu_type] * batch

    def sync_s(self, gbps: float = REFERENCE_GBPS) -> float:
        """Return the seconds to send gradients to the parameter server and receive the model (HR32)."""
        if not gbps > 0:
            raise InvalidJobError(f"the network's speed is {gbps} Gbps, must be > 0")
        return 2.0 * self.parameters_mb * 8e-3 / gbps


def _speeds(m60: float, t4: float, v100: float) -> dict[str, float]:
    return {"k80": 1.0, "m60": m60, "t4": t4, "v100": v100}


MODELS: dict[str, HareModel] = {
    model.name: model
    for model in (
        HareModel("vgg19", "cv", 3288.94, 0.9821, 4.01, 0.0240, 2.77, 0.0182, _speeds(1.4, 2.2, 7.5), 80.0),
        HareModel("resnet50", "cv", 5961.16, 0.9737, 4.75, 0.0546, 2.04, 0.0371, _speeds(1.4, 2.0, 7.0), 98.0),
        HareModel("inceptionv3", "cv", 7807.43, 0.9699, 5.03, 0.0239, 2.46, 0.0143, _speeds(1.4, 2.1, 6.5), 92.0),
        HareModel("bert_base", "nlp", 9016.99, 0.9395, 12.57, 0.0199, 5.03, 0.0113, _speeds(1.5, 2.6, 8.0), 420.0),
        HareModel("transformer", "nlp", 5257.17, 0.9541, 10.34, 0.0203, 5.79, 0.0136, _speeds(1.5, 2.4, 7.0), 250.0),
        HareModel("deepspeech", "speech", 5125.64, 0.9415, 8.91, 0.0159, 4.27, 0.0125, _speeds(1.3, 1.9, 5.0), 150.0),
        HareModel("fastgcn", "rec", 5327.24, 0.9847, 2.86, 0.0756, 1.83, 0.0453, _speeds(1.2, 1.5, 2.2), 4.0),
        HareModel("graphsage", "rec", 5213.54, 0.9829, 2.42, 0.0864, 0.96, 0.0336, _speeds(1.2, 1.4, 2.0), 4.0),
    )
}
"""Models by name. Parameter sizes are published ones or assumptions (papers/hare.md); the rest is from Table 3."""

FAMILIES: dict[str, tuple[str, ...]] = {
    family: tuple(m.name for m in MODELS.values() if m.family == family) for family in ("cv", "nlp", "speech", "rec")
}
