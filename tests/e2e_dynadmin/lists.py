"""Lists of many objects, and lists that are temporarily refused. The browser answers instead of the service."""

import json

from playwright.async_api import Route, expect

from .deploying import PATIENT
from .stage import TEAM, Stage

MANY = 450
PLACE = f"#/{TEAM}/models"


def _frame(event: str, data: object) -> str:
    return f"event: {event}\ndata: {json.dumps(data)}\n\n"


def _model(number: int) -> dict[str, object]:
    name, ready = f"model-{number}", number % 100 > 0
    condition = {"type": "Ready", "status": "True" if ready else "False", "reason": "InvalidSpec", "message": "why"}
    return {
        "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"modelName": name, "baseModelName": "Qwen/Qwen3-0.6B"},
        "status": {"conditions": [condition]},
    }


async def a_long_list_is_filtered_sorted_and_drawn_in_parts(stage: Stage) -> None:
    """Of many objects 200 are drawn, and more on demand; filter and order are in the address, and there again on the way back."""
    person = await stage.person(stage.engineer)
    page, rows = person.page, person.page.locator("tbody tr")
    content = "".join(_frame("ADDED", _model(number)) for number in range(MANY)) + _frame("synced", {"position": "1"})

    async def answer(route: Route) -> None:
        # A resumed stream has nothing new.
        if "last-event-id" not in route.request.headers:
            await route.fulfill(
                content_type="text/event-stream", body=content.replace("event: synced", "id: 1\nevent: synced")
            )

    await page.route(f"**/{TEAM}/models?watch=true", answer)
    await person.go(PLACE)
    await expect(rows).to_have_count(200, timeout=PATIENT)
    await page.get_by_role("button", name="Show 200 more").click()
    await expect(rows).to_have_count(400)
    await expect(page.get_by_role("link", name="model-200", exact=True)).to_be_focused()
    await page.get_by_role("button", name="Show 50 more").click()
    await expect(page.get_by_role("button", name="more")).to_have_count(0)
    for order, first in (("ascending", "model-0"), ("descending", "model-1")):
        await page.get_by_role("button", name="State", exact=True).click()
        await expect(page.get_by_role("columnheader", name="State")).to_have_attribute("aria-sort", order)
        await expect(rows.first.locator("th")).to_have_text(first)
    assert not (result := await person.axe()), result
    await page.get_by_label("Filter").fill("model-44")
    await expect(rows).to_have_count(11)
    await page.get_by_role("link", name="model-449").click()
    await expect(page.get_by_role("heading", name="model-449")).to_be_visible()
    await page.go_back()
    await expect(rows).to_have_count(11, timeout=PATIENT)
    await page.get_by_role("link", name="model-449").click()
    await page.get_by_label("Breadcrumbs").get_by_role("link").click()
    await expect(rows).to_have_count(11, timeout=PATIENT)
    await expect(page.get_by_label("Filter")).to_have_value("model-44")
    assert page.url.endswith(f"{PLACE}?filter=model-44&sort=-State"), page.url


async def a_list_that_is_refused_for_a_while_says_why(stage: Stage) -> None:
    """If too many streams are open, the view says so, and becomes live as soon as there is room."""
    person = await stage.person(stage.engineer)
    problem = {"type": "urn:dynamo:problem:too-many-requests", "detail": "100 streams are open; close one"}
    refused = f"**/{TEAM}/models?watch=true"
    await person.page.route(refused, lambda route: route.fulfill(status=429, json=problem))
    await person.go(PLACE)
    await expect(person.page.get_by_role("alert")).to_contain_text("close one", timeout=PATIENT)
    await person.page.unroute(refused)
    await expect(person.page.locator(".head .line")).to_have_text("live", timeout=PATIENT)
    await expect(person.page.get_by_role("alert")).to_have_count(0)
