"""Two users with different rights."""

from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS
from playwright.async_api import expect

from .deploying import PATIENT
from .stage import OTHER, TEAM, Stage
from .watching import graph


async def users_see_and_do_what_their_rights_allow(stage: Stage) -> None:
    """A reader of another namespace sees only that one, in lists and streams, and may change nothing."""
    theirs = graph("theirs")
    theirs["metadata"]["namespace"] = OTHER
    await stage.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, theirs)
    reader = await stage.person(stage.reader)
    await expect(reader.page.locator(".space option")).to_have_text([OTHER], timeout=PATIENT)
    await reader.go(f"#/{OTHER}/deployments")
    await expect(reader.page.locator("table.rows tbody th a")).to_have_text(["theirs"], timeout=PATIENT)
    await reader.go(f"#/{TEAM}/deployments")
    await expect(reader.page.locator(".notice.bad")).to_contain_text("may not", timeout=PATIENT)
    await expect(reader.page.locator("table.rows")).to_have_count(0)
    status = await reader.page.evaluate(
        "async path => (await fetch(path, { headers: { Accept: 'text/event-stream' } })).status",
        f"/api/v1/namespaces/{TEAM}/deployments?watch=true",
    )
    assert status == 403, status
    await reader.go(f"#/{OTHER}/deployments/theirs")
    await expect(reader.page.get_by_role("button", name="Delete")).to_be_disabled(timeout=PATIENT)
    await expect(reader.page.get_by_role("button", name="Restart")).to_be_disabled()
    await expect(reader.page.get_by_label("Replicas of Frontend")).to_be_disabled()
    await expect(reader.page.get_by_text("You may read this object, but not change it.")).to_be_visible()
    await reader.go(f"#/{OTHER}/deploy")
    await reader.page.get_by_role("button", name="A graph by hand").click()
    await expect(reader.page.get_by_text("You may not create graphs")).to_be_visible(timeout=PATIENT)
    await expect(reader.page.get_by_role("button", name="Deploy", exact=True)).to_be_disabled()
    await stage.screenshot(reader, "reader")
    # The page keeps the user's data in memory and in a cookie that scripts cannot read.
    kept = await reader.page.evaluate("() => JSON.stringify(localStorage) + document.cookie")
    assert stage.reader not in kept
    assert "__Host" not in kept
    await reader.page.get_by_role("button", name="Sign out").click()
    await expect(reader.page.get_by_role("heading", name="Sign in")).to_be_visible(timeout=PATIENT)
