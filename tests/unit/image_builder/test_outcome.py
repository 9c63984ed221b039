"""The state of a build, from its Job and pods."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from dynamo_image_builder.job import source
from dynamo_image_builder.outcome import observe
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations as keys

from .building import DIGEST, NOW, ended, job

WAITING = {"name": "build", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
UNPLACED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
NO_TLS = "failed to do request: http: server gave HTTP response to HTTPS client"
NO_FROM, NO_CHILD = "failed to resolve source metadata for docker.io/x", "failed to start the child"


def of_build(log: str) -> KubeObject:
    """The pod of a build that failed with this log."""
    return ended("build", f"digest=\n{log}", 1)


def test_a_finished_build_has_digest_duration_and_the_end_of_its_log() -> None:
    observed = observe(job("Complete"), [ended("build", f"digest={DIGEST}\n#9 pushing\n#9 DONE 1.2s\n")], NOW)
    assert (observed.done, observed.reason, observed.digest) == (True, "Built", DIGEST)
    assert observed.duration == 94
    assert observed.log == "#9 pushing\n#9 DONE 1.2s"


def test_the_digest_stays_known_when_the_pod_is_gone() -> None:
    kept = job("Complete")
    kept["metadata"]["annotations"][keys.IMAGE_DIGEST] = DIGEST
    assert observe(kept, [], NOW).digest == DIGEST
    lost = observe(job("Complete"), [], NOW)
    assert (lost.done, lost.reason) == (False, "ResultLost")


@pytest.mark.parametrize("digest", ["", "sha256:12", "latest", "sha256:" + "G" * 64])
def test_a_build_without_a_valid_digest_has_failed_and_is_not_repeated(digest: str) -> None:
    observed = observe(job("Complete"), [ended("build", f"digest={digest}\nlog")], NOW)
    assert (observed.done, observed.reason, observed.log) == (False, "BuildFailed", "log")


@pytest.mark.parametrize(
    ("pod", "reason", "words"),
    [
        (ended("fetch", "NoDockerfile: the archive has neither x nor y", 1), "NoDockerfile", "has neither x nor y"),
        (ended("fetch", "", 2, reason="Error"), "FetchFailed", "the archive was not fetched: Error"),
        (of_build("#5 ERROR: process /bin/false"), "BuildFailed", "correct it in the archive"),
        (ended("build", "digest=\n", 137, reason="OOMKilled"), "OutOfMemory", "raise platform.imageBuilder.resources"),
        # A user who raised `resources` raised those of BuildKit, without effect.
        (
            ended("fetch", "", 137, reason="OOMKilled"),
            "OutOfMemory",
            "raise platform.imageBuilder.fetchResources, or pack the archive with gzip",
        ),
        (
            of_build("error: failed to push r/x: unauthorized"),
            "PushFailed",
            "the Secret with credentials that may push",
        ),
        (of_build(f"ERROR: {NO_TLS}"), "PushFailed", "set platform.imageBuilder.registry.secure to false"),
        (of_build(f"ERROR: {NO_FROM}"), "PullFailed", "cannot pull the FROM image of the Dockerfile"),
        (of_build(f"[rootlesskit:parent] error: {NO_CHILD}"), "NotAllowed", "admit Pod Security privileged"),
        ({"status": {"reason": "Evicted", "message": "disk"}}, "Evicted", "the build's pod was lost: disk"),
    ],
)
def test_a_failure_says_what_to_do(pod: KubeObject, reason: str, words: str) -> None:
    observed = observe(job("Failed", reason="BackoffLimitExceeded", message="Job has reached its limit"), [pod], NOW)
    assert (observed.done, observed.reason) == (False, reason)
    assert words in observed.message


def drained(pod: KubeObject, **status: str) -> KubeObject:
    """A pod that was ended from outside: conditions as the API server and the kubelet write them."""
    target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "evicting"}
    return {**pod, "status": {**pod["status"], "conditions": [target], **status}}


@pytest.mark.parametrize(
    ("pod", "reason", "words"),
    [
        (drained(ended("build", "", 137, reason="Error")), "EvictionByEvictionAPI", "was lost: evicting"),
        (drained(ended("fetch", "", 137, reason="Error")), "EvictionByEvictionAPI", "was lost: evicting"),
        (drained(ended("build", "", 137), reason="Evicted", message="disk"), "Evicted", "was lost: disk"),
        (drained(ended("build", "", 143), reason="Terminated", message="shutdown"), "Terminated", "lost: shutdown"),
        (drained(ended("build", "digest=\n#5 ERROR: /bin/false", 1)), "BuildFailed", "correct it in the archive"),
    ],
)
def test_a_drained_node_is_not_reported_as_an_error_of_the_archive(pod: KubeObject, reason: str, words: str) -> None:
    """Its containers are killed, and their statuses stay."""
    observed = observe(job("Failed", reason="BackoffLimitExceeded", message="Job has reached its limit"), [pod], NOW)
    assert observed.reason == reason
    assert words in observed.message


@pytest.mark.parametrize(
    ("ended", "reason", "message"),
    [
        ({"message": "Job has reached its limit"}, "BuildFailed", "Job has reached its limit"),
        (
            {"reason": "DeadlineExceeded"},
            "DeadlineExceeded",
            "the build took more than 3600 s: make it smaller, or raise platform.imageBuilder.deadline",
        ),
    ],
)
def test_a_failure_without_a_pod_is_that_of_the_job(ended: dict[str, Any], reason: str, message: str) -> None:
    observed = observe(job("Failed", **ended), [], NOW)
    assert (observed.reason, observed.message) == (reason, message)


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        ([], "NoPod"),
        ([{"status": {"conditions": [UNPLACED]}}], "Unschedulable"),
        ([{"status": {"containerStatuses": [WAITING]}}], "ImagePullBackOff"),
        ([{"status": {"containerStatuses": [{"name": "build", "state": {"running": {}}}]}}], "Building"),
    ],
)
def test_the_reason_of_a_stuck_build_is_reported(pods: list[KubeObject], reason: str) -> None:
    observed = observe(job(), pods, NOW)
    assert (observed.done, observed.reason) == (None, reason)


def test_a_job_may_take_some_seconds_to_get_a_pod() -> None:
    assert observe(job(), [], NOW.replace(minute=1, second=3)).reason == "Building"


def test_secrets_of_a_log_are_not_repeated() -> None:
    text = "digest=\nERROR: GET https://robot:hunter22@r.example.com/x?X-Signature=abcdef failed"
    observed = observe(job("Failed"), [ended("build", text, 1)], NOW)
    for said in (observed.log, observed.message):
        assert "hunter22" not in said
        assert "abcdef" not in said


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (
            f'echo \'{{"containerimage.digest": "{DIGEST}"}}\' > $0/metadata.json; echo pushed',
            0,
            f"digest={DIGEST}\npushed\n",
        ),
        ("echo broken >&2; exit 3", 3, "digest=\nbroken\n"),
        ("seq 1 5000", 0, None),
    ],
)
def test_the_script_of_the_builder_leaves_digest_and_log(
    tmp_path: Path, command: str, code: int, said: str | None
) -> None:
    (tmp_path / "metadata.json").write_text("{}")
    message = tmp_path / "message"
    environment = {"WORKSPACE": str(tmp_path), "TERMINATION_LOG": str(message), "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        ["sh", "-c", source("build.sh"), "build.sh", "sh", "-c", command, str(tmp_path)], env=environment, check=False
    )
    assert ran.returncode == code
    text = message.read_text()
    assert len(text) <= 4096
    assert text == said if said is not None else text.endswith("4999\n5000\n")
