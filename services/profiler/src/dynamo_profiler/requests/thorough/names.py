"""Names of the objects of thorough profiling (operator behaviour, section 7.7)."""

import hashlib

from dynamo_shared.api import request_parts

PROFILER, RELAY = request_parts.PROFILER, request_parts.RELAY
SERVICE_ACCOUNT = "dgdr-profiling-job"
OUTPUT_VOLUME, CACHE_VOLUME, CONFIG_VOLUME, TOKEN_VOLUME = (
    "profiling-output",
    "model-cache",
    "profiling-config",
    "output-copier-kube-api-access",
)
OUTPUT_PATH = "/data"
TOKEN_SECRET, TOKEN_KEY = "hf-token-secret", "HF_TOKEN"
PULL_SECRET = "nvcr-imagepullsecret"  # noqa: S105 - its name
#: Keys of the output ConfigMap.
FINAL_CONFIG, STATUS, ERROR, PHASE, MESSAGE, WEB_DATA = (
    "final_config.yaml",
    "profiler_status",
    "profiler_error",
    "phase",
    "message",
    "webui_data.json",
)
#: Values of the profiler's status after its end.
SUCCESS, FAILED = "success", "failed"
LAST = (SUCCESS, FAILED)

#: Largest length of a Job's name, which is a label of its pods. Characters.
_MAX_JOB = 63
_DIGEST = 6


def job(request: str) -> str:
    """The name of a request's Job, shortened with a hash if necessary."""
    full = f"profile-{request}"
    if len(full) <= _MAX_JOB:
        return full
    digest = hashlib.sha256(request.encode()).hexdigest()[:_DIGEST]
    return f"{full[: _MAX_JOB - _DIGEST - 1].rstrip('-.')}-{digest}"


def output(request: str) -> str:
    """The name of a request's output ConfigMap."""
    return f"dgdr-output-{request}"
