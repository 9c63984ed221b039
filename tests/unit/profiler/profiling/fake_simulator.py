"""Speaks as a worker process of profiling does; what it does with a job, the job's own words say."""

import json
import os
import sys
import time
from typing import Any


def send(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def engine(tp: int, batch: int, rate: float) -> dict[str, object]:
    return {"tp": tp, "batch_size": batch, "gpus": tp, "requests_per_second": rate}


def points(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Half a second to the first token; ten milliseconds to another with 8 GPUs, twenty with 2."""
    made = []
    faster = 4 if job["model"] == "Qwen/Qwen3-8B" and job["serving"] == "disagg" else 1
    for tp, slow, rate in ((8, 10.0, 5.0), (2, 20.0, 2.0)):
        itl = slow / faster
        if job["serving"] == "agg":
            engines = {"agg": engine(tp, 64, rate)}
        else:
            engines = {"prefill": engine(tp, 1, rate), "decode": engine(tp, 64, rate)}
        made.append(
            {
                "backend": job["backend"],
                "serving": job["serving"],
                "engines": engines,
                "replicas": dict.fromkeys(engines, 1),
                "ttft_ms": 500.0,
                "itl_ms": itl,
                "latency_ms": 500.0 + itl * 999,
                "concurrency": 64.0,
                "requests_per_second": rate * 0.9,
                "tokens_per_second_per_gpu": rate * 900 / tp / len(engines),
                "tokens_per_second_per_user": 1000 / itl,
            }
        )
    return made


def curves() -> dict[str, object]:
    prefill = {"prefill_isl": [100, 4000], "prefill_ttft": [20.0, 500.0], "prefill_thpt_per_gpu": [5000.0, 8000.0]}
    decode = {
        "x_kv_usage": [0.1, 0.9],
        "y_context_length": [350.0, 350.0],
        "z_itl": [10.0, 20.0],
        "z_thpt_per_gpu": [100.0, 400.0],
        "max_kv_tokens": [64_000],
    }
    return {"prefill_raw_data.json": prefill, "decode_raw_data.json": decode}


def answer(job: dict[str, Any]) -> dict[str, object]:
    if job["job"] == "curves":
        return {"outcome": "found", "curves": curves()}
    result = points(job)
    if not job["relaxed"]:
        result = [each for each in result if each["ttft_ms"] <= job["ttft_ms"] and each["itl_ms"] <= job["itl_ms"]]
    if not result:
        return {"outcome": "infeasible", "message": "no configuration meets the latencies"}
    return {"outcome": "found", "points": result}


HELD: list[bytearray] = []
"""What a worker keeps from one job to the next."""


def act(job: dict[str, object]) -> None:
    system = str(job["system"])
    send({"role": "prefill", "progress": f"process {os.getpid()}"})
    if system == "b200_sxm":  # never ends
        time.sleep(3600)
    elif system == "a100_sxm":  # dies
        sys.stderr.write("out of luck\n")
        sys.stderr.flush()
        os._exit(3)
    elif system == "a30":  # grows
        held = []
        while True:
            held.append(bytearray(b"x" * 16 * 1024 * 1024))
            time.sleep(0.01)
    elif system == "gb200":  # keeps 40 MiB
        HELD.append(bytearray(b"x" * 40 * 1024 * 1024))
        time.sleep(0.6)
        send({"answer": answer(job)})
    elif system == "rtx_pro_6000_server":
        send({"answer": {"outcome": "unsupported", "message": "no figures of vllm on rtx_pro_6000_server"}})
    elif system == "l40s" or (system == "gb300" and job.get("serving") == "disagg"):
        send({"answer": {"outcome": "too-small", "message": "does not fit"}})
    else:
        send({"answer": answer(job)})


def main() -> None:
    send({"ready": os.getpid()})
    for line in sys.stdin:
        act(json.loads(line))


if __name__ == "__main__":
    main()
