"""Deploying: from an empty form to a graph that serves, and every field in between."""

import json
import re
from typing import Any

from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_REQUESTS
from playwright.async_api import expect

from .browser import Person
from .stage import TEAM, WITHIN, Stage

SMALL = "Qwen/Qwen3-0.6B"
#: Limit for the page to show something. Milliseconds.
PATIENT = WITHIN * 1000
#: A request is simulated first, on a busy machine. Milliseconds.
PROFILED = 300_000

#: Whether the browser closes the page without asking.
MAY_BE_CLOSED = "() => dispatchEvent(new Event('beforeunload', { cancelable: true }))"

#: The text for each field, and the resulting part of the object.
OF_A_GRAPH: dict[str, tuple[str | bool, str]] = {
    "/serving/mode": ("disaggregated", '"type": "prefill"'),
    "/hardware/gpusPerReplica": ("4", '"nvidia.com/gpu": "4"'),
    "/serving/replicas/prefill": ("2", '"replicas": 2'),
    "/serving/replicas/decode": ("3", '"replicas": 3'),
    "/serving/replicas/frontend": ("5", '"replicas": 5'),
    "/serving/router": ("kv", '"DYN_ROUTER_MODE", "value": "kv"'),
    "/serving/autoscaling": (True, '"scalingAdapter": {}'),
    "/parallelism/tensor": ("2", "--tensor-parallel-size"),
    "/parallelism/pipeline": ("2", "--pipeline-parallel-size"),
    "/hardware/gpuProduct": ("NVIDIA-H100-80GB-HBM3", '"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"'),
    "/hardware/cpu": ("7", '"cpu": "7"'),
    "/hardware/memory": ("63Gi", '"memory": "63Gi"'),
    "/hardware/sharedMemory": ("9Gi", '"sharedMemorySize": "9Gi"'),
    "/engine/contextLength": ("8191", '"8191"'),
    "/engine/maxBatchSize": ("97", '"97"'),
    "/engine/dtype": ("bfloat16", '"bfloat16"'),
    "/engine/quantization": ("fp8", '"fp8"'),
    "/engine/trustRemoteCode": (True, "--trust-remote-code"),
    "/engine/args": ("--seed\n11", '"--seed", "11"'),
    "/engine/envSecrets": ("more-settings", '{"secretRef": {"name": "more-settings"}}'),
    "/engine/env": ("COLOUR=green", '{"name": "COLOUR", "value": "green"}'),
    "/model/tokenSecret": ("my-token", '{"secretRef": {"name": "my-token"}}'),
    "/model/cache/claim": ("models", '"claimName": "models"'),
    "/model/cache/mountPath": ("/models-here", '"mountPath": "/models-here"'),
    "/model/revision": ("v1.2", '"revision": "v1.2"'),
    "/model/servedName": ("small-one", '"name": "small-one"'),
    "/images/runtime": ("example.test/runtime:9", '"image": "example.test/runtime:9"'),
    "/images/pullSecrets": ("pull-here", '"imagePullSecrets": [{"name": "pull-here"}]'),
    "/compilationCache/claim": ("kernels", '"pvcName": "kernels"'),
    "/placement/nodeSelector": ("pool=blue", '"pool": "blue"'),
    "/placement/tolerations": ("- key: gpu\n  operator: Exists", '{"key": "gpu", "operator": "Exists"}'),
    "/placement/priorityClass": ("system-cluster-critical", '"priorityClassName": "system-cluster-critical"'),
    "/placement/scheduler": ("other-scheduler", '"schedulerName": "other-scheduler"'),
    "/labels": ("team=blue", '"team": "blue"'),
    "/annotations": ("note=kept", '"note": "kept"'),
}
OF_AN_OBJECTIVE: dict[str, tuple[str | bool, str]] = {
    "/backend": ("vllm", '"backend": "vllm"'),
    "/objective/ttftMs": ("611", '"ttft": 611'),
    "/objective/itlMs": ("31.5", '"itl": 31.5'),
    "/workload/isl": ("3001", '"isl": 3001'),
    "/workload/osl": ("401", '"osl": 401'),
    "/workload/concurrency": ("12", '"concurrency": 12'),
    "/hardware/totalGpus": ("6", '"totalGpus": 6'),
    "/hardware/gpuSku": ("h200_sxm", '"gpuSku": "h200_sxm"'),
    "/hardware/gpusPerNode": ("8", '"numGpusPerNode": 8'),
    "/hardware/vramMib": ("143000", '"vramMb": 143000'),
    "/hardware/interconnect": ("nvlink", '"interconnect": "nvlink"'),
    "/hardware/rdma": (True, '"rdma": true'),
    "/objective/search": ("rapid", '"searchStrategy": "rapid"'),
    "/objective/autoApply": ("false", '"autoApply": false'),
    "/model/cache/claim": ("models", '"pvcName": "models"'),
    "/model/cache/path": ("qwen", '"pvcModelPath": "qwen"'),
    "/model/cache/mountPath": ("/models-here", '"pvcMountPath": "/models-here"'),
    "/images/runtime": ("example.test/profiler:9", '"image": "example.test/profiler:9"'),
    "/images/pullSecrets": ("pull-here", '"imagePullSecrets": [{"name": "pull-here"}]'),
    "/placement/tolerations": ("- key: gpu\n  operator: Exists", '{"key": "gpu", "operator": "Exists"}'),
    "/labels": ("team=blue", '"team": "blue"'),
    "/annotations": ("note=kept", '"note": "kept"'),
    "/engine/env": ("COLOUR=green", '{"name": "COLOUR", "value": "green"}'),
    "/mocker": (True, '"mocker": {"enabled": true}'),
}


async def empty_form(person: Person, mode: str, name: str, model: str = SMALL) -> None:
    """An empty form of a mode, with a name and a model."""
    await person.go(f"#/{TEAM}/deploy")
    await person.page.get_by_role("button", name=mode).click()
    await person.give("/model/name", model)
    await person.give("/name", name)


async def deployed(person: Person) -> None:
    """Press Deploy once it is enabled, and wait for the object's view."""
    button = person.page.get_by_role("button", name="Deploy", exact=True)
    await expect(button).to_be_enabled(timeout=PATIENT)
    await button.click()
    await person.page.wait_for_selector("dyn-detail", timeout=PATIENT)


async def a_graph_by_hand_becomes_successful(stage: Stage) -> None:
    """A graph by hand goes from an empty form to successful."""
    person = await stage.person(stage.engineer)
    await empty_form(person, "A graph by hand", "by-hand")
    await person.give("/backend", "vllm")
    await expect(person.page.get_by_text("The API server and admission accept it")).to_be_visible(timeout=PATIENT)
    await expect(person.page.locator("dyn-deploy .tree").get_by_text("by-hand-worker").first).to_be_visible()
    await expect(person.page.locator(".deploy .right").get_by_text("fits", exact=True)).to_be_visible()
    await stage.screenshot(person, "deploy-graph")
    await deployed(person)
    await expect(person.page.locator("h1 .badge")).to_have_text("successful", timeout=PATIENT)
    await expect(person.page.locator("dyn-tree").get_by_text("Pod", exact=True).first).to_be_visible(timeout=PATIENT)
    await stage.screenshot(person, "detail-graph")
    assert (await stage.graph("by-hand"))["spec"]["backendFramework"] == "vllm"


async def an_objective_becomes_successful(stage: Stage) -> None:
    """An objective goes from an empty form to a successful graph."""
    person = await stage.person(stage.engineer)
    await empty_form(person, "An objective", "by-objective")
    await person.give("/backend", "vllm")
    await person.give("/objective/ttftMs", "600")
    await person.give("/objective/itlMs", "30")
    await person.give("/hardware/totalGpus", "2")
    await expect(person.page.locator("dyn-pareto tbody tr").first).to_be_visible(timeout=PROFILED)
    assert not (cut := await person.cut_tables()), cut
    await stage.screenshot(person, "deploy-objective")
    await deployed(person)
    await expect(person.page.locator("h1 .badge")).to_have_text("Deployed", timeout=PROFILED)
    await stage.screenshot(person, "detail-request")
    await person.page.locator(".facts a").click()
    await expect(person.page.locator("h1 .badge")).to_have_text("successful", timeout=PATIENT)


async def a_point_of_a_request_is_deployed(stage: Stage) -> None:
    """A point of a request's front is chosen and deployed."""
    person = await stage.person(stage.engineer)
    await person.go(f"#/{TEAM}/requests/by-objective/points")
    rows = person.page.locator("dyn-points tbody input[type=radio]")
    await rows.first.wait_for(timeout=PATIENT)
    number = min(1, await rows.count() - 1)
    await rows.nth(number).check()
    await stage.screenshot(person, "points")
    await person.page.get_by_role("button", name="Deploy this point").click()
    await person.page.get_by_role("dialog").get_by_role("button", name="Deploy", exact=True).click()
    await expect(person.page.locator("h1 .badge")).to_have_text("successful", timeout=PATIENT)
    name = (await person.page.locator("h1").inner_text()).split()[0]
    request = await stage.graph("by-objective", resource=DYNAMO_GRAPH_DEPLOYMENT_REQUESTS)
    results = request["status"]["profilingResults"]
    points = [results["selectedConfig"], *(each["config"] for each in results.get("pareto") or [])]
    replicas = [_replicas(each["spec"]) for each in points]
    assert _replicas((await stage.graph(name))["spec"]) in replicas


def _replicas(spec: dict[str, Any]) -> dict[str, int]:
    return {each["name"]: each.get("replicas", 1) for each in spec["components"]}


async def every_field_of_a_graph_is_in_the_object(stage: Stage) -> None:
    """Every field of a graph that the form has is set in the object."""
    await _every_field(stage, "A graph by hand", "all-of-graph", {"/backend": ("vllm", "dynamo.vllm"), **OF_A_GRAPH})


async def every_field_of_an_objective_is_in_the_object(stage: Stage) -> None:
    """Every field of an objective that the form has is set in the object."""
    await _every_field(stage, "An objective", "all-of-objective", OF_AN_OBJECTIVE)


async def _every_field(stage: Stage, mode: str, name: str, fields: dict[str, tuple[str | bool, str]]) -> None:
    person = await stage.person(stage.engineer)
    await empty_form(person, mode, name)
    for pointer, (value, _) in fields.items():
        await person.give(pointer, value)
    await stage.screenshot(person, name)
    await deployed(person)
    graph = mode != "An objective"
    result = await (stage.graph(name) if graph else stage.graph(name, resource=DYNAMO_GRAPH_DEPLOYMENT_REQUESTS))
    text = json.dumps({"metadata": {**result["metadata"], "managedFields": None}, "spec": result["spec"]})
    missing = {pointer: desired for pointer, (_, desired) in fields.items() if desired not in text}
    if missing.get("/serving/router"):
        assert '"name": "DYN_ROUTER_MODE"' in text
        del missing["/serving/router"]
    assert not missing, missing


#: A preset's place in the list: SGLang, aggregated.
SGLANG = "2"


async def a_preset_replaces_earlier_choices(stage: Stage) -> None:
    """A preset replaces earlier choices and invalid text; an invalid field disables Deploy."""
    person = await stage.person(stage.engineer)
    await empty_form(person, "A graph by hand", "preset")
    for each in ("sglang", "vllm"):
        await person.give("/backend", each)
    button = person.page.get_by_role("button", name="Deploy", exact=True)
    await expect(button).to_be_enabled(timeout=PATIENT)
    workers = person.page.locator('[name="/serving/replicas/worker"]')
    await person.give("/serving/replicas/worker", "2x")
    await expect(workers).to_have_attribute("aria-invalid", "true")
    await expect(button).to_be_disabled()
    await person.page.locator("select[name=preset]").select_option(SGLANG)
    await person.page.get_by_role("dialog").get_by_role("button", name="Replace").click()
    await expect(person.page.locator('[name="/backend"]')).to_have_value("sglang")
    await expect(workers).to_have_value("")
    await expect(button).to_be_enabled(timeout=PATIENT)


async def a_form_is_not_lost(stage: Stage) -> None:
    """A form is restored after a visit of another view; the page asks before it is replaced or closed."""
    person = await stage.person(stage.engineer)
    page, begun = person.page, person.page.locator("select[name=preset]")
    name = page.locator('[name="/name"]')
    dialog = page.get_by_role("dialog")
    await person.go(f"#/{TEAM}/deploy")
    assert await page.evaluate(MAY_BE_CLOSED)
    await begun.select_option(SGLANG)
    await expect(page.locator("dyn-estimate .figures")).to_be_visible(timeout=PATIENT)
    await person.give("/name", "typed-in")
    await page.get_by_role("link", name="Graphs").first.click()
    await page.wait_for_selector("dyn-list")
    assert not await page.evaluate(MAY_BE_CLOSED)
    await page.go_back()
    await expect(name).to_have_value("typed-in", timeout=PATIENT)
    await begun.select_option("")
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(begun.locator("option:checked")).to_have_text("what you filled in")
    await expect(name).to_have_value("typed-in")
    await begun.select_option("")
    await dialog.get_by_role("button", name="Replace").click()
    await expect(name).to_have_value("")
    await expect(page.locator("dyn-estimate .figures")).to_have_count(0)
    assert await page.evaluate(MAY_BE_CLOSED)


async def an_edited_manifest_fills_in_the_form(stage: Stage) -> None:
    """Editing the manifest updates the fields; parts without a field are kept, listed, and deployed."""
    person = await stage.person(stage.engineer)
    await empty_form(person, "A graph by hand", "edited")
    await person.give("/backend", "vllm")
    manifest = person.page.locator("textarea.manifest")
    await expect(manifest).to_have_value(_holding("kind: DynamoGraphDeployment"), timeout=PATIENT)
    button = person.page.get_by_role("button", name="Deploy", exact=True)
    await expect(button).to_be_enabled(timeout=PATIENT)
    await manifest.fill("kind: [")
    await expect(button).to_be_disabled()
    await person.page.get_by_role("button", name="Discard my text").click()
    await expect(manifest).to_have_value(_holding("kind: DynamoGraphDeployment"))
    await expect(button).to_be_enabled(timeout=PATIENT)
    text = (await manifest.input_value()).replace("replicas: 1", "replicas: 2", 1)
    text = text.replace("  backendFramework: vllm", "  env:\n  - name: KEPT\n    value: here\n  backendFramework: vllm")
    await manifest.fill(text)
    await expect(person.page.locator('[name="/serving/replicas/frontend"]')).to_have_value("2", timeout=PATIENT)
    await expect(person.page.locator("dyn-manifest").get_by_text("/spec/env")).to_be_visible(timeout=PATIENT)
    await stage.screenshot(person, "deploy-kept")
    await deployed(person)
    spec = (await stage.graph("edited"))["spec"]
    assert spec["components"][0]["replicas"] == 2
    assert spec["env"] == [{"name": "KEPT", "value": "here"}]


def _holding(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text))


async def errors_are_shown_at_their_fields(stage: Stage) -> None:
    """Errors of the API are all shown at once at their fields, and Deploy is disabled."""
    person = await stage.person(stage.engineer)
    await empty_form(person, "A graph by hand", "Not_A_Name")
    await person.give("/backend", "vllm")
    await person.give("/hardware/cpu", "plenty")
    await person.give("/engine/contextLength", "-4")
    for pointer in ("/name", "/engine/contextLength", "/hardware/cpu"):
        field = person.page.locator(f'[name="{pointer}"]')
        await expect(field).to_have_attribute("aria-invalid", "true", timeout=PATIENT)
    await person.give("/name", "by-hand")
    await person.give("/engine/contextLength", "")
    await expect(person.page.locator('[name="/hardware/cpu"][aria-invalid="true"]')).to_be_visible(timeout=PATIENT)
    await expect(person.page.get_by_role("button", name="Deploy", exact=True)).to_be_disabled()
    await stage.screenshot(person, "deploy-refused")
    await person.give("/hardware/cpu", "")
    taken = person.page.locator('[name="/name"]')
    await expect(taken).to_have_attribute("aria-invalid", "true", timeout=PATIENT)
    await expect(person.page.get_by_text("already exists")).to_be_visible()
