"""The two traces' readers: small files of their form, broken lines, and the traces themselves where they are."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from copter_frontends.placement.servers import ServerError, make_scheme, read_azure, read_openb, simulate_placement

DATA = Path(__file__).parents[5] / "shared" / "data"
SIZES = ["600 a,b,|,a,|", "900 b,|"]
LIVES = ["600 U0,U2,|,C1,|", "900 U1,|"]


def azure(
    folder: Path, sizes: list[str] = SIZES, lives: list[str] = LIVES, flavours: str = "1,1.75 a\n2,3.5 b\n"
) -> Path:
    (folder / "flav_map.txt").write_text(flavours)
    (folder / "v1.interval_map.txt").write_text("0 0\n300 1\n600 2\n1200 2\n")
    for name, lines in (("v1.dev.txt.gz", sizes), ("v1.dev.c21.txt.gz", lives)):
        with gzip.open(folder / name, "wt") as file:
            file.write("\n".join(lines) + "\n")
    return folder


def test_azure_is_read(tmp_path: Path) -> None:
    found = read_azure(azure(tmp_path), servers=10, spread=True)
    assert [each.shape.tolist() for each in found.rounds] == [[0, 1, 0], [1]]
    assert [each.group.tolist() for each in found.rounds] == [[0, 0, 1], [0]]
    assert found.rounds[0].rounds[0] == 1
    assert found.rounds[0].rounds[2] > 10**9  # still runs at the end
    assert found.shapes[1].amounts == (2000, 3584)
    assert [each.share for each in found.shapes] == [0.5, 0.5]
    result = simulate_placement("copter", make_scheme("copter", found), found)
    assert result.rounds[-1].worth_running > 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lives": ["600 U0,U2,|,C1,|", "900 U9,|"]}, "line 2: b U9 is no size and lifetime"),
        ({"lives": ["600 U0,|,U2,C1,|", "900 U1,|"]}, "line 1: does not belong"),
        ({"lives": LIVES[:1]}, "1 lines, the sizes have 2"),
        ({"sizes": ["600 a,z,|,a,|", "900 b,|"]}, "line 1: z U2"),
        ({"flavours": "1,1.75 a\nbroken\n"}, "line 2: 'broken' is not"),
        ({"flavours": "1,1.75 a\n2,3.5 a\n"}, "line 2: 'a' is missing or named twice"),
    ],
)
def test_broken_lines_of_azure_are_named(tmp_path: Path, change: dict[str, list[str]], said: str) -> None:
    with pytest.raises(ServerError, match=said):
        read_azure(azure(tmp_path, **change), servers=10)


NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,8000,1000,2,T4\nn1,8000,1000,1,P100\n"
HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
PODS = HEAD + "p0,1000,10,1,500,\np1,2000,10,1,1000,T4|V100\np2,500,10,0,0,\n"


def openb(folder: Path, pods: str = PODS) -> Path:
    (folder / "openb_node_list_gpu_node.csv").write_text(NODES)
    (folder / "openb_pod_list_default.csv").write_text(pods)
    return folder


def test_openb_is_read(tmp_path: Path) -> None:
    found = read_openb(openb(tmp_path), load=3.0)
    shapes = np.concatenate([each.shape for each in found.rounds])
    asked = sum(found.shapes[k].gpus * found.shapes[k].gpu_milli for k in shapes.tolist())
    assert 9000 - 1000 <= asked <= 9000
    assert found.shapes[1].types == ("T4-0",)
    assert [each.share for each in found.shapes] == [1.0, 1.0, 1.0]
    first, again = read_openb(tmp_path, 3.0, seed=1), read_openb(tmp_path, 3.0, seed=1)
    assert [each.shape.tolist() for each in first.rounds] == [each.shape.tolist() for each in again.rounds]


def test_broken_lines_of_openb_are_named(tmp_path: Path) -> None:
    for pods, said in (
        (PODS + "p3,1000,x,1,500,\n", "line 5: .* are not whole numbers"),
        (PODS + "p3,1000,-1,1,500,\n", "line 5: -1 is below 0"),
        (PODS + "p3,1000\n", "line 5: 2 fields, the head has 6"),
        ("name,cpu\n", "no column 'cpu_milli'"),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,0,0\n", "no pod asks for a GPU"),
    ):
        with pytest.raises(ServerError, match=said):
            read_openb(openb(tmp_path, pods))
    with pytest.raises(ServerError, match="cannot be read"):
        read_openb(tmp_path / "nowhere")


@pytest.mark.skipif(not (DATA / "azure_vm").is_dir(), reason="needs ../shared/data/azure_vm")
def test_azures_own_stream_uses_the_fewest_servers() -> None:
    used = {}
    for name in ("copter", "best-fit"):
        workload = read_azure(DATA / "azure_vm", servers=300, rounds=40)
        used[name] = simulate_placement(name, make_scheme(name, workload), workload).summary()
    assert used["copter"]["admitted_worth"] == 1.0
    assert used["copter"]["servers_used"] < used["best-fit"]["servers_used"]


@pytest.mark.skipif(not (DATA / "alibaba" / "openb_v2023").is_dir(), reason="needs ../shared/data/alibaba/openb_v2023")
def test_openb_has_its_servers_and_pods() -> None:
    found = read_openb(DATA / "alibaba" / "openb_v2023", 1.3)
    assert sum(each.count for each in found.types) == 1213
    assert sum(each.count * each.gpus for each in found.types) == 6212
    assert sum(each.share for each in found.shapes) == 8152
