"""Watching: conflicts, scaling, logs, replays, and a service that is killed meanwhile."""

import asyncio
import json
import re
from typing import Any

from dynamo_shared.api.registry.annotations import PLANNER_CONFIG
from dynamo_shared.api.resources import CONFIG_MAPS, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from playwright.async_api import Route, expect

from tests.building.objects import object_of
from tests.integration.dynadmin import happens
from tests.integration.platform import IMAGE

from .deploying import MAY_BE_CLOSED, PATIENT, PROFILED
from .stage import TEAM, Stage

#: Inputs for planning a graph: ConfigMaps by the prefix of their names.
PLANNED: dict[str, dict[str, Any]] = {
    "planner-config": {
        "planner_config.json": {"mode": "agg", "optimization_target": "sla", "ttft_ms": 300, "itl_ms": 20}
    },
    "planner-profile-data": {
        "prefill_raw_data.json": {"prefill_isl": [100, 1000, 8000], "prefill_ttft": [11, 20, 90]},
        "decode_raw_data.json": {
            "x_kv_usage": [0.001, 0.01, 0.1],
            "y_context_length": [1000, 1000, 1000],
            "z_itl": [5.1, 6, 15],
            "max_kv_tokens": [1_000_000],
        },
    },
}


def graph(name: str, **component: Any) -> dict[str, Any]:
    """A graph of one frontend, as another user would create it."""
    pod = {"spec": {"containers": [{"name": "main", "image": IMAGE}]}}
    frontend = {"name": "Frontend", "type": "frontend", "replicas": 1, "podTemplate": pod, **component}
    spec = {"backendFramework": "vllm", "components": [frontend]}
    return object_of(DYNAMO_GRAPH_DEPLOYMENTS, name, TEAM, spec=spec)


async def a_change_by_someone_else_is_a_conflict(stage: Stage) -> None:
    """If another user changes a graph while it is edited, both texts are shown, and the user decides."""
    key = ObjectKey(TEAM, "shared")
    await stage.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph("shared"))
    person = await stage.person(stage.engineer)
    await person.go(f"#/{TEAM}/deployments/shared/yaml")
    area = person.page.get_by_label("Manifest", exact=True)
    await area.wait_for()
    await stage.kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, {"metadata": {"labels": {"before": "yes"}}})
    # An unedited view follows the object.
    await expect(area).to_have_value(re.compile("before: "), timeout=PATIENT)
    await area.fill((await area.input_value()).replace("replicas: 1", "replicas: 2"))
    await stage.kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, {"metadata": {"labels": {"theirs": "yes"}}})
    await person.page.get_by_role("button", name="Save", exact=True).click()
    await expect(person.page.get_by_role("heading", name="The object has changed")).to_be_visible(timeout=PATIENT)
    await expect(person.page.get_by_label("Stored now")).to_be_visible()
    await stage.screenshot(person, "conflict")
    assert (await stage.graph("shared"))["spec"]["components"][0]["replicas"] == 1
    # The graph's status may change it again meanwhile: then the user confirms twice.
    for _ in range(5):
        await person.page.get_by_role("button", name="Overwrite with mine").click()
        await asyncio.sleep(1)
        if (await stage.graph("shared"))["spec"]["components"][0]["replicas"] == 2:
            return
    raise AssertionError("the change was not saved")


async def typed_text_stays_while_the_manifest_is_reloaded(stage: Stage) -> None:
    """If another user changes a graph, its manifest is reloaded, but typed text is not overwritten."""
    await stage.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph("read-again"))
    person = await stage.person(stage.engineer)
    await person.go(f"#/{TEAM}/deployments/read-again/yaml")
    area = person.page.get_by_label("Manifest", exact=True)
    await area.wait_for()
    begun, answered = asyncio.Event(), asyncio.Event()

    async def late(route: Route) -> None:
        begun.set()
        await answered.wait()
        await route.continue_()

    await person.page.route("**/deployments/read-again", late)
    change = {"metadata": {"labels": {"theirs": "yes"}}}
    await stage.kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(TEAM, "read-again"), change)
    await asyncio.wait_for(begun.wait(), PATIENT / 1000)
    mine = (await area.input_value()).replace("replicas: 1", "replicas: 2")
    await area.fill(mine)
    async with person.page.expect_response("**/deployments/read-again"):
        answered.set()
    await person.page.wait_for_timeout(300)
    await expect(area).to_have_value(mine)


async def typed_text_stays_while_another_tab_is_open(stage: Stage) -> None:
    """An unsaved manifest is restored after a visit of another tab of the view; the browser asks before it is lost."""
    await stage.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph("typed-in"))
    person = await stage.person(stage.engineer)
    place = f"#/{TEAM}/deployments/typed-in"
    area = person.page.get_by_label("Manifest", exact=True)
    await person.go(f"{place}/yaml")
    mine = (await area.input_value()).replace("replicas: 1", "replicas: 2")
    assert await person.page.evaluate(MAY_BE_CLOSED)
    await area.fill(mine)
    await person.page.get_by_role("link", name="YAML (edited)").wait_for()
    await person.go(f"#/{TEAM}/deployments")
    assert not await person.page.evaluate(MAY_BE_CLOSED)
    await person.page.get_by_role("button", name="Sign out").click()
    await expect(person.page.get_by_role("dialog")).to_contain_text("1 manifest with changes", timeout=PATIENT)
    await stage.screenshot(person, "sign-out-with-draft")
    await person.page.get_by_role("button", name="Cancel").click()
    await person.go(f"{place}/yaml")
    await expect(area).to_have_value(mine)
    await person.page.get_by_role("button", name="Save", exact=True).click()
    await expect(person.page.get_by_role("link", name="YAML", exact=True)).to_be_visible(timeout=PATIENT)
    assert (await stage.graph("typed-in"))["spec"]["components"][0]["replicas"] == 2
    await area.fill(f"{mine}# more")
    await person.page.get_by_role("button", name="Discard changes").click()
    await expect(area).not_to_have_value(re.compile("# more"))
    assert await person.page.evaluate(MAY_BE_CLOSED)


async def an_object_that_is_being_deleted_says_what_it_waits_for(stage: Stage) -> None:
    """The view names the finalizers of an object that is being deleted, offers no actions, and says when it is gone."""
    held, key, hold = graph("held"), ObjectKey(TEAM, "held"), "example.test/hold"
    held["metadata"]["finalizers"] = [hold]
    await stage.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, held)
    await stage.kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, key)
    person = await stage.person(stage.engineer)
    await person.go(f"#/{TEAM}/deployments/held")
    await expect(person.page.locator("h1 .badge")).to_have_text("deleting", timeout=PATIENT)
    await expect(person.page.locator(".notice")).to_contain_text(hold)
    await expect(person.page.get_by_role("button", name="Delete")).to_have_count(0)
    await stage.kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, {"metadata": {"finalizers": None}})
    await expect(person.page.get_by_text("It was deleted.")).to_be_visible(timeout=PATIENT)


async def events_arrive_as_they_happen(stage: Stage) -> None:
    """Events arrive in one stream: a new one is on top, and nothing is requested again."""
    await stage.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph("eventful"))
    person = await stage.person(stage.engineer)
    asked: list[str] = []
    person.page.on("request", lambda each: asked.append(each.url) if "/events" in each.url else None)
    await person.go(f"#/{TEAM}/deployments/eventful/events")
    rows = person.page.locator("table.events tbody tr")
    await expect(rows.filter(has_text="Ready")).to_have_count(1, timeout=PATIENT)
    await happens(stage.kube, await stage.graph("eventful"), "Unheard")
    await expect(rows.first).to_contain_text("Unheard", timeout=PATIENT)
    assert len(asked) == 1, asked
    await person.page.get_by_label("Warnings only").check()
    await expect(person.page.get_by_text("No warnings.")).to_be_visible()


async def a_view_shows_the_object_of_its_address(stage: Stage) -> None:
    """After a change of the address to another graph, the manifest is saved to that graph, which keeps its owner."""
    owner = (await stage.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph("owner")))["metadata"]
    reference = {**DYNAMO_GRAPH_DEPLOYMENTS.type_meta}
    owned = graph("owned")
    owned["metadata"]["ownerReferences"] = [{**reference, "name": owner["name"], "uid": owner["uid"]}]
    await stage.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, owned)
    person = await stage.person(stage.engineer)
    area = person.page.get_by_label("Manifest", exact=True)
    await person.go(f"#/{TEAM}/deployments/owner/yaml")
    await expect(area).to_have_value(re.compile("name: owner\n"), timeout=PATIENT)
    await person.go(f"#/{TEAM}/deployments/owned/yaml")
    await expect(area).to_have_value(re.compile("name: owned\n"), timeout=PATIENT)
    # Admission and the pod-builder may change the object meanwhile: then the user loads it again.
    for _ in range(5):
        await area.fill((await area.input_value()).replace("replicas: 1", "replicas: 2"))
        await person.page.get_by_role("button", name="Save", exact=True).click()
        await expect(person.page.get_by_text("Saved").or_(person.page.get_by_text("has changed since"))).to_be_visible()
        stored = await stage.graph("owned")
        if stored["spec"]["components"][0]["replicas"] == 2:
            break
        await person.page.get_by_role("button", name="Use the stored manifest").click()
    assert stored["spec"]["components"][0]["replicas"] == 2
    assert [each["name"] for each in stored["metadata"]["ownerReferences"]] == ["owner"]


async def replicas_are_scaled_and_refused_with_the_reason(stage: Stage) -> None:
    """Replicas are scaled by the adapter; if a planner owns them, the page names it and says what to do."""
    await stage.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph("scaled", scalingAdapter={}))
    planned = graph("planned")
    planned["metadata"]["annotations"] = {PLANNER_CONFIG: "a-planner"}
    await stage.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, planned)
    person = await stage.person(stage.engineer)
    await person.go(f"#/{TEAM}/deployments/scaled")
    await expect(person.page.locator("h1 .badge")).to_have_text("successful", timeout=PATIENT)
    await person.page.get_by_label("Replicas of Frontend").fill("3")
    await person.page.get_by_role("button", name="Scale", exact=True).click()
    await expect(person.page.get_by_text("3/3")).to_be_visible(timeout=PATIENT)
    await person.go(f"#/{TEAM}/deployments/planned")
    await person.page.get_by_label("Replicas of Frontend").fill("4")
    await person.page.get_by_role("button", name="Scale", exact=True).click()
    await expect(person.page.locator(".refusal")).to_contain_text("a-planner", timeout=PATIENT)
    await stage.screenshot(person, "scale-refused")
    assert (await stage.graph("planned"))["spec"]["components"][0]["replicas"] == 1


async def a_refusal_keeps_the_focus(stage: Stage) -> None:
    """The keyboard focus stays after a refusal; a user who closes a dialog in progress sees its outcome."""
    await stage.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph("refused"))
    person = await stage.person(stage.engineer)
    page, keyboard = person.page, person.page.keyboard
    problem = {"type": "urn:dynamo:problem:forbidden", "detail": "the rules of the cluster forbid it"}
    answered = asyncio.Event()

    async def refuse(route: Route) -> None:
        if route.request.method == "GET":
            await route.continue_()
            return
        await answered.wait()
        await route.fulfill(status=403, json=problem)

    await page.route("**/deployments/refused*", refuse)
    await page.route("**/deployments/refused/scale", refuse)
    answered.set()
    await person.go(f"#/{TEAM}/deployments/refused")
    await page.get_by_label("Replicas of Frontend").fill("2")
    await page.get_by_role("button", name="Scale", exact=True).press("Enter")
    await expect(page.locator(".refusal")).to_contain_text("forbid it", timeout=PATIENT)
    assert await page.evaluate("() => document.activeElement.closest('dyn-replicas') !== null")
    await page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("textbox").fill("refused")
    await dialog.get_by_role("button", name="Delete").press("Enter")
    await expect(dialog.get_by_role("alert")).to_contain_text("forbid it", timeout=PATIENT)
    await expect(dialog.get_by_role("button", name="Delete")).to_be_focused()
    answered.clear()
    await keyboard.press("Enter")
    await keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    answered.set()
    await expect(page.locator(".toast")).to_contain_text("forbid it", timeout=PATIENT)
    await person.go(f"#/{TEAM}/deployments/refused/yaml")
    area = page.get_by_label("Manifest", exact=True)
    await area.fill((await area.input_value()).replace("replicas: 1", "replicas: 2"))
    await page.get_by_role("button", name="Save", exact=True).press("Enter")
    await expect(page.locator("#yaml-problem")).to_contain_text("forbid it", timeout=PATIENT)
    assert await page.evaluate("() => document.activeElement.closest('dyn-yaml') !== null")


async def a_pod_that_is_not_ready_leads_to_its_log(stage: Stage) -> None:
    """The overview names a pod that is not ready, with the reason and what to do; a link opens its log of before."""
    person = await stage.person(stage.engineer)
    page, name = person.page, "by-hand-worker-x"
    crashed = {
        "message": "main: CrashLoopBackOff back-off 5m0s",
        "restarts": 3,
        "node": "kwok-0",
        "component": "worker",
    }

    async def pods(route: Route) -> None:
        await route.fulfill(json={"items": [{"name": name, "phase": "Running", "ready": False, **crashed}]})

    await page.route("**/by-hand/pods", pods)
    await person.go(f"#/{TEAM}/deployments/by-hand")
    await expect(page.get_by_role("heading", name="A pod is not ready")).to_be_visible(timeout=PATIENT)
    await expect(page.locator("dyn-pods .advice")).to_contain_text("Its log shows the reason")
    await expect(page.get_by_role("heading", name="Who changed it")).to_be_visible()
    await stage.screenshot(person, "unready")
    async with page.expect_request(lambda each: f"pod={name}" in each.url and "previous=true" in each.url):
        await page.get_by_role("link", name=f"Log of {name} before the last restart").press("Enter")
    chosen = page.get_by_role("combobox", name="Pod")
    await expect(chosen).to_have_value(name)
    await expect(page.get_by_label("Before the last restart")).to_be_checked()
    async with page.expect_request(lambda each: "/by-hand/logs?" in each.url and "pod=" not in each.url):
        await chosen.select_option("")
    assert "pod=" not in page.url


async def logs_say_why_they_are_missing(stage: Stage) -> None:
    """Simulated pods have no kubelet: the view of logs stays up and says for each container why it has none."""
    person = await stage.person(stage.engineer)
    await person.go(f"#/{TEAM}/deployments/by-hand/logs")
    await expect(person.page.locator(".log .notice-line").first).to_be_visible(timeout=PATIENT)
    await expect(person.page.locator(".log .notice-line").first).to_contain_text("by-hand")
    await stage.screenshot(person, "logs")


async def the_log_stays_where_it_is_read(stage: Stage) -> None:
    """Scrolling up in a followed log keeps the position while lines arrive; at the end it is followed again."""
    person = await stage.person(stage.engineer)
    log = person.page.get_by_role("log")
    follow = person.page.get_by_label("Follow")
    more = asyncio.Event()

    async def lines(route: Route) -> None:
        first = int(route.request.headers.get("last-event-id", 0))
        if first:
            await more.wait()
        if first == 400:
            return
        frames = [
            f"id: {each}\nevent: log\ndata: {json.dumps({'time': '', 'pod': 'pod', 'text': f'line {each}.'})}\n\n"
            for each in range(first + 1, first + 201)
        ]
        await route.fulfill(content_type="text/event-stream", body="".join(frames))

    await person.page.route("**/by-hand/logs?*", lines)
    await person.go(f"#/{TEAM}/deployments/by-hand/logs")
    await expect(log.get_by_text("line 200.")).to_be_in_viewport(timeout=PATIENT)
    # The page renders again before the browser reports the scrolling.
    await log.evaluate("each => { each.scrollTop = 100; each.closest('dyn-logs').requestUpdate() }")
    await expect(follow).not_to_be_checked()
    async with person.page.expect_response("**/by-hand/logs?*"):
        more.set()
    await person.page.wait_for_timeout(300)
    assert await log.evaluate("each => each.scrollTop") == 100
    await log.evaluate("each => { each.scrollTop = each.scrollHeight }")
    await expect(follow).to_be_checked()
    await expect(log.get_by_text("line 400.")).to_be_in_viewport(timeout=PATIENT)


async def a_chat_that_fails_says_why(stage: Stage) -> None:
    """Simulated pods cannot answer a chat: a bubble shows the reason in full."""
    person = await stage.person(stage.engineer)
    await person.go(f"#/{TEAM}/deployments/by-hand/chat")
    await person.page.get_by_label("Your message").fill("Hello")
    await person.page.keyboard.press("Enter")
    await expect(person.page.locator(".chat .error")).not_to_be_empty(timeout=PATIENT)
    bubble = await person.page.locator(".chat li").first.bounding_box()
    assert bubble, "the message is not shown"
    assert bubble["height"] < 60, bubble
    await stage.screenshot(person, "chat-error")


async def a_killed_service_loses_and_duplicates_nothing(stage: Stage) -> None:
    """The service is killed while a list is open: afterwards each graph is listed once, and deleted ones are not."""
    person = await stage.person(stage.engineer)
    for name in ("before", "goes"):
        await stage.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(name))
    await person.go(f"#/{TEAM}/deployments")
    names = person.page.locator("table.rows tbody th a")
    await expect(names.filter(has_text="goes")).to_have_count(1, timeout=PATIENT)
    await stage.dynadmin.kill()
    await expect(person.page.get_by_text("connection lost")).to_be_visible(timeout=PATIENT)
    await stage.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph("meanwhile"))
    await stage.kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(TEAM, "goes"))
    await stage.dynadmin.start()
    await expect(names.filter(has_text="meanwhile")).to_have_count(1, timeout=PATIENT)
    await expect(names.filter(has_text="goes")).to_have_count(0, timeout=PATIENT)
    await expect(person.page.locator(".head .line")).to_have_text("live", timeout=PATIENT)
    listed = await names.all_inner_texts()
    stored = {each["metadata"]["name"] for each in await stage.kube.list(DYNAMO_GRAPH_DEPLOYMENTS, TEAM)}
    assert len(listed) == len(set(listed)), listed
    assert set(listed) == stored, (listed, stored)
    await stage.screenshot(person, "list")


async def decisions_are_replayed_with_another_price(stage: Stage) -> None:
    """The planner's view replays the traffic with another price: errors at their fields, then both runs side by side."""
    name = "replayed"
    for config_map, data in PLANNED.items():
        metadata = {"name": f"{config_map}-{name}", "namespace": TEAM}
        texts = {key: json.dumps(value) for key, value in data.items()}
        await stage.kube.create(
            CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": texts}
        )
    planned = graph(name)
    planned["metadata"]["annotations"] = {PLANNER_CONFIG: f"planner-config-{name}"}
    planned["spec"]["components"].append({**planned["spec"]["components"][0], "name": "Worker", "type": "worker"})
    stored = await stage.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, planned)
    await stage.decided(stored, {"requestsPerSecond": 5.0, "isl": 1000.0, "osl": 100.0})
    person = await stage.person(stage.engineer)
    await person.go(f"#/{TEAM}/deployments/{name}/planner")
    price = person.page.get_by_label("Price of a GPU")
    await price.wait_for()
    replay = person.page.get_by_role("button", name="Replay", exact=True)
    for wrong, said in (("cheap", "a number is needed"), ("5", "too large")):
        await price.fill(wrong)
        await replay.click()
        await expect(person.page.locator("#replay-gpu-price-error")).to_contain_text(said, timeout=PATIENT)
        await expect(price).to_have_attribute("aria-invalid", "true")
    await price.fill("0.5")
    await replay.click()
    table = person.page.get_by_role("table", name="Both runs")
    await expect(table.get_by_role("row", name="GPU-hours")).to_be_visible(timeout=PROFILED)
    await expect(person.page.locator("#replay-gpu-price-error")).to_have_count(0)
    await expect(person.page.get_by_text("Profile of the engines: the planner's profile.")).to_be_visible()
    assert not (result := await person.axe()), result
    await stage.screenshot(person, "replay")
