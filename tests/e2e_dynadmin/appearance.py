"""Accessibility of the page: axe, keyboard only, screen widths."""

from dynamo_shared.api.resources import DYNAMO_MODELS
from playwright.async_api import expect

from tests.building.objects import object_of

from .browser import Person
from .deploying import PATIENT
from .stage import TEAM, Stage

#: From a large text on a phone to a desktop; sidebar and tables change in between.
WIDTHS = (320, 390, 768, 901, 1024, 1140, 1240, 1440)
#: As long as a Kubernetes name can be.
LONGEST = ".".join(("n" * 63, "o" * 63, "p" * 63, "q" * 61))
VIEWS = {
    "list": f"#/{TEAM}/deployments",
    "requests": f"#/{TEAM}/requests",
    "models": f"#/{TEAM}/models",
    "adapters": f"#/{TEAM}/adapters",
    "detail": f"#/{TEAM}/deployments/by-hand",
    "logs": f"#/{TEAM}/deployments/by-hand/logs",
    "events": f"#/{TEAM}/deployments/by-hand/events",
    "chat": f"#/{TEAM}/deployments/by-hand/chat",
    "planner": f"#/{TEAM}/deployments/by-hand/planner",
    "yaml": f"#/{TEAM}/deployments/by-hand/yaml",
    "request": f"#/{TEAM}/requests/by-objective",
    "points": f"#/{TEAM}/requests/by-objective/points",
    "deploy": f"#/{TEAM}/deploy",
}


async def _settled(person: Person) -> None:
    await person.page.wait_for_function("() => !document.querySelector('main')?.textContent.includes('Loading')")
    await person.page.wait_for_timeout(300)


async def _raw_values(person: Person) -> list[str]:
    """Raw values of the program that the page should have turned into words."""
    text = await person.page.locator("main").inner_text()
    return [each for each in ("[object", "undefined", "NaN", "You may not list") if each in text]


async def every_view_is_accessible(stage: Stage) -> None:
    """axe reports nothing in any view, light and dark; no view shows raw values or cuts a table."""
    wrong: dict[str, list[str]] = {}
    for scheme in ("light", "dark"):
        person = await stage.person("", color_scheme=scheme, bypass_csp=False)
        await person.page.goto(person.url)
        await person.page.get_by_label("Token").wait_for()
        if result := await person.axe():
            wrong[f"sign in, {scheme}"] = result
        await stage.screenshot(person, f"sign-in-{scheme}")
        await person.sign_in(stage.engineer)
        for name, place in VIEWS.items():
            await person.go(place)
            await _settled(person)
            if name == "deploy":
                await person.page.locator("select[name=preset]").select_option(index=2)
                await expect(person.page.locator("dyn-deploy .tree")).to_be_visible(timeout=PATIENT)
                await person.page.evaluate(
                    "() => document.querySelectorAll('details').forEach(each => each.open = true)"
                )
            if result := [*await person.axe(), *await _raw_values(person), *await person.cut_tables()]:
                wrong[f"{name}, {scheme}"] = result
            await stage.screenshot(person, f"{name}-{scheme}")
    assert not wrong, wrong


async def _tab_to(person: Person, accessible: str) -> None:
    """Press Tab until an element of this name has the focus."""
    for _ in range(120):
        await person.page.keyboard.press("Tab")
        result = await person.page.evaluate(
            "() => { const it = document.activeElement; const label = it.labels?.[0]?.textContent ?? '';"
            " return (it.getAttribute('aria-label') || label || it.textContent || '').trim() }"
        )
        if str(result).replace("\n", " ").startswith(accessible):
            return
    raise AssertionError(f"Tab does not lead to {accessible}")


async def the_keyboard_is_enough(stage: Stage) -> None:
    """A user signs in, deploys a graph, and deletes it with the keyboard only."""
    person = await stage.person("")
    page, keyboard = person.page, person.page.keyboard
    await page.goto(person.url)
    await page.get_by_label("Token").wait_for()
    await _tab_to(person, "Token")
    await keyboard.insert_text(stage.engineer)
    await _tab_to(person, "Sign in")
    await keyboard.press("Enter")
    await page.wait_for_selector(".side")
    await _tab_to(person, "Deploy a model")
    await keyboard.press("Enter")
    await page.wait_for_selector(".modes")
    await _tab_to(person, "A graph by hand")
    await keyboard.press("Space")
    for label, text in (("Model", "Qwen/Qwen3-0.6B"), ("Name", "typed")):
        await _tab_to(person, label)
        await keyboard.insert_text(text)
    await _tab_to(person, "Engine")
    await keyboard.type("vllm")
    await expect(page.get_by_role("button", name="Deploy", exact=True)).to_be_enabled(timeout=PATIENT)
    await _tab_to(person, "Deploy")
    await keyboard.press("Enter")
    await expect(page.locator("h1 .badge")).to_have_text("successful", timeout=PATIENT)
    await _tab_to(person, "Delete")
    await keyboard.press("Enter")
    await page.get_by_role("dialog").wait_for()
    await _tab_to(person, "Type typed")
    await keyboard.insert_text("typed")
    await keyboard.press("Enter")
    await page.wait_for_selector("dyn-list", timeout=PATIENT)


#: The element that covers the middle of the focused one, if there is one.
COVER = """() => {
  const it = document.activeElement, { left, top, width, height } = it.getBoundingClientRect();
  const over = document.elementFromPoint(left + Math.min(width / 2, 20), top + Math.min(height / 2, 14));
  return it === document.body || !over || it.contains(over) || over.contains(it) || it.labels?.[0]?.contains(over)
    ? "" : `${it.outerHTML.slice(0, 80)} is below ${over.outerHTML.slice(0, 80)}`;
}"""


async def the_focused_element_is_visible(stage: Stage) -> None:
    """The summary of the form and the bar on a phone do not cover the focused element, forwards and backwards."""
    person = await stage.person(stage.engineer)
    page = person.page
    covered = []
    for width, height in ((1280, 700), (360, 640)):
        await page.set_viewport_size({"width": width, "height": height})
        await person.go(f"#/{TEAM}/deploy")
        await page.get_by_role("button", name="A graph by hand").click()
        for key in ("Tab", "Shift+Tab"):
            for _ in range(18):
                await page.keyboard.press(key)
                if cover := await page.evaluate(COVER):
                    covered.append(f"{width}: {cover}")
    assert not covered, covered


async def the_page_fits_every_screen(stage: Stage) -> None:
    """From phone to desktop nothing is wider than the screen, and no table is cut, even with the longest names."""
    spec = {"modelName": "lora", "baseModelName": "Qwen/Qwen3-0.6B"}
    await stage.kube.create(DYNAMO_MODELS, object_of(DYNAMO_MODELS, LONGEST, TEAM, spec=spec))
    person = await stage.person(stage.engineer)
    views = {**VIEWS, "longest": f"#/{TEAM}/models/{LONGEST}"}
    wide = {}
    for name, place in views.items():
        await person.go(place)
        await _settled(person)
        for width in WIDTHS:
            await person.page.set_viewport_size({"width": width, "height": 844})
            if (taken := await person.page.evaluate("() => document.documentElement.scrollWidth")) > width:
                wide[f"{name}, {width}"] = [str(taken)]
            elif result := await person.cut_tables():
                wide[f"{name}, {width}"] = result
        await person.page.set_viewport_size({"width": WIDTHS[0], "height": 844})
        await stage.screenshot(person, f"{name}-phone")
    assert not wide, wide
