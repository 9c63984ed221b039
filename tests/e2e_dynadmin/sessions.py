"""Sessions that end or are replaced in another tab; and the keyboard in the list of namespaces."""

from dynamo_shared.api.resources import NAMESPACES
from playwright.async_api import Route, expect

from tests.integration.dynadmin import may

from .browser import Person
from .deploying import PATIENT
from .stage import OTHER, TEAM, Stage


async def a_session_that_ends_says_why(stage: Stage) -> None:
    """A user who is sent to the sign-in reads the reason; after signing out there is none."""
    person = await stage.person(stage.engineer)
    await person.go(f"#/{TEAM}/deployments")
    await person.page.context.clear_cookies()
    await person.go(f"#/{TEAM}/requests")
    await expect(person.page.locator("#token-error")).to_contain_text("log in again", timeout=PATIENT)
    await expect(person.page.get_by_role("heading", name="Sign in")).to_be_focused()
    await person.page.get_by_label("Token").fill(stage.engineer)
    await person.page.get_by_role("button", name="Sign in").click()
    # The button that had the focus is gone: a screen reader continues at the view.
    await expect(person.page.get_by_role("heading", name="Requests")).to_be_focused(timeout=PATIENT)
    await person.page.get_by_role("button", name="Sign out").click()
    await expect(person.page.get_by_role("heading", name="Sign in")).to_be_focused(timeout=PATIENT)
    await expect(person.page.locator("#token-error")).to_be_empty()


async def a_session_that_cannot_be_read_is_not_over(stage: Stage) -> None:
    """While the API server does not answer, a reload says so, and shows no sign-in; then the page continues."""
    person = await stage.person(stage.engineer)
    problem = {"type": "urn:dynamo:problem:unavailable", "detail": "the API server does not answer"}
    await person.page.route("**/api/v1/session", lambda route: route.fulfill(status=503, json=problem))
    await person.page.reload()
    await expect(person.page.get_by_role("status")).to_have_text("Trying again: the API server does not answer")
    await expect(person.page.get_by_label("Token")).to_have_count(0)
    await person.page.unroute("**/api/v1/session")
    await person.page.wait_for_selector(".shell")


async def a_session_that_the_browser_drops_is_explained(stage: Stage) -> None:
    """Over http a browser silently drops the cookie: the sign-in says what it needs."""
    person = await stage.person("")
    await person.page.goto(person.url)
    token = person.page.get_by_label("Token")
    await token.fill(stage.engineer)
    await person.page.route("**/api/v1/session", _without_cookie)
    await person.page.get_by_role("button", name="Sign in").click()
    await expect(person.page.locator("#token-error")).to_contain_text("over https", timeout=PATIENT)


async def _without_cookie(route: Route) -> None:
    answer = await route.fetch()
    headers = {name: value for name, value in answer.headers.items() if name != "set-cookie"}
    # By now the browser has already removed the cookie from the request.
    await route.request.frame.page.context.clear_cookies()
    await route.fulfill(response=answer, headers=headers)


async def a_form_outlives_the_session(stage: Stage) -> None:
    """If a session ends while a form is filled in, the form is restored after the sign-in, and empty for others."""
    person = await stage.person(stage.engineer)
    await person.go(f"#/{TEAM}/deploy")
    name = person.page.locator('[name="/name"]')
    for token, expected in ((stage.engineer, "mine"), (stage.reader, "")):
        await person.give("/name", "mine")
        await person.page.context.clear_cookies()
        await person.give("/model/name", "Qwen/Qwen3-0.6B" if expected else "Qwen/Qwen3-32B")
        await expect(person.page.get_by_role("heading", name="Sign in")).to_be_visible(timeout=PATIENT)
        await person.page.get_by_label("Token").fill(token)
        await person.page.get_by_role("button", name="Sign in").click()
        await expect(name).to_have_value(expected, timeout=PATIENT)


async def another_tabs_session_is_taken_over(stage: Stage) -> None:
    """The first tab shows the user of the new session, and what this user may see."""
    person = await stage.person(stage.engineer)
    await person.go(f"#/{TEAM}/deploy")
    await expect(person.page.locator(".who span")).not_to_have_text("reader")
    other = Person(await person.page.context.new_page(), stage.url)
    # The browser's only session ends first: the page shows the sign-in.
    await person.page.context.clear_cookies()
    await other.sign_in(stage.reader)
    await person.give("/model/name", "Qwen/Qwen3-0.6B")
    await person.give("/name", "mine")
    await expect(person.page.locator(".who span")).to_have_text("reader", timeout=PATIENT)
    await expect(person.page.get_by_text("You may not create deployment requests")).to_be_visible(timeout=PATIENT)


async def the_list_of_namespaces_keeps_the_keyboard(stage: Stage) -> None:
    """Each step opens a namespace, and the focus stays in the list for the next step."""
    person = await stage.person(stage.engineer)
    await person.go(f"#/{OTHER}/deployments")
    choice = person.page.locator(".space select")
    await expect(choice.locator("option")).to_have_text([TEAM, OTHER], timeout=PATIENT)
    await choice.focus()
    await person.page.keyboard.press("ArrowUp")
    await expect(person.page.locator("h1")).to_be_visible()
    await person.page.wait_for_function("name => location.hash.includes(name)", arg=TEAM)
    await person.page.wait_for_timeout(300)
    await expect(choice).to_be_focused()
    await person.go("#/")  # the list shows a namespace, so this one opens
    await person.page.wait_for_function("name => location.hash.includes(name)", arg=TEAM)


async def a_namespace_that_is_created_appears(stage: Stage) -> None:
    """A namespace that is created while the page is open appears without a reload, once the user may read it."""
    person = await stage.person(stage.engineer)
    await person.go(f"#/{TEAM}/deployments")
    new = "created-meanwhile"
    await stage.kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": new}})
    user = {"kind": "User", "name": f"system:serviceaccount:{TEAM}:engineer"}
    await may(stage.kube, new, "guest", user)
    await person.page.locator(".space select").focus()
    await expect(person.page.locator(".space option", has_text=new)).to_have_count(1, timeout=PATIENT)
