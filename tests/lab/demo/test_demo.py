"""`make demo`: the main job, as a newcomer sees it."""

import json
import re
import signal
import subprocess
import sys
import urllib.request

from lab.standins.patience import PATIENCE_S


def test_the_shops_are_kept_together_and_without_numakin_they_are_not() -> None:
    played = subprocess.run(
        [sys.executable, "-m", "lab.demo", "--json"], capture_output=True, text=True, check=True, timeout=3 * PATIENCE_S
    )
    shares = json.loads(played.stdout)
    assert shares["numakin"] >= 0.95
    assert shares["lowest first"] < 0.5
    assert shares["spread"] < 0.2
    assert re.search(r"nominated: \d+ kept", played.stderr)
    assert "who landed where" not in played.stderr
    assert len(played.stderr.splitlines()) < 45, "more than a screen"


def test_verbose_tells_each_pods_place_and_scores_and_keep_leaves_it_running_and_says_where() -> None:
    command = [sys.executable, "-m", "lab.demo", "--verbose", "--keep"]
    told: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            told.append(line)
            if address := re.search(r"curl '(http\S+)'", line):
                break
        assert address is not None
        with urllib.request.urlopen(address[1], timeout=PATIENCE_S) as answer:
            explained = json.load(answer)
        assert explained["scored"]["nodes"][0]["reasons"]
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(PATIENCE_S) == 0
    assert "who landed where" in "".join(told)
    assert len(re.findall(r"-> \S+ NUMA node \d", "".join(told))) == 64
