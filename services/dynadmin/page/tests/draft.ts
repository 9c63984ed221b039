import { Draft } from "../src/deploy/draft.ts";
import { deepEqual, equal, test } from "./check.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A form and its world: requests that the test answers, and pauses that it ends. */
async function begun(intent) {
  const timers = [];
  const asked = [];
  globalThis.window = {
    setTimeout: (act, milliseconds) => timers.push({ act, milliseconds }),
    clearTimeout: (number) => number && (timers[number - 1] = null),
  };
  globalThis.fetch = (path, { body }) =>
    new Promise((resolve, reject) => {
      const answer = (given, status = 200) => resolve(new Response(JSON.stringify(given), { status, headers: { "Content-Type": "application/json" } }));
      asked.push({ path: String(path), body: JSON.parse(body), answer, reject });
    });
  const draft = new Draft(() => {});
  const pass = async (milliseconds) => {
    for (const each of timers.splice(0, timers.length, ...timers.map((one) => (one && one.milliseconds <= milliseconds ? null : one))))
      if (each && each.milliseconds <= milliseconds) each.act();
    await turn();
  };
  draft.open("a");
  draft.replace(intent);
  await pass(250);
  return { draft, asked, pass };
}

const manifest = (name, replicas) => ({ metadata: { name }, spec: { replicas } });
const answerTo = (intent) => ({
  manifest: manifest(intent.name, intent.serving?.replicas?.frontend ?? 1),
  yaml: "",
  origins: { "/metadata/name": "/name", "/spec/replicas": "/serving/replicas/frontend" },
  defaulted: [],
});
const INTENT = { mode: "graph", name: "q", model: { name: "m" } };

test("what is typed into the form while an edited manifest is translated stays", async () => {
  const { draft, asked } = await begun(INTENT);
  asked[0].answer(answerTo(asked[0].body));
  await turn();
  const edit = draft.edited(manifest("q", 4));
  draft.give("/backend", "vllm");
  asked.at(-1).answer(answerTo(asked.at(-1).body));
  await edit;
  deepEqual([draft.intent.backend, draft.intent.serving.replicas.frontend, draft.kept], ["vllm", 4, []]);
});

test("an edited manifest does not come back over a later one, or over a preset", async () => {
  const { draft, asked } = await begun(INTENT);
  asked[0].answer(answerTo(asked[0].body));
  await turn();
  const edits = [draft.edited(manifest("q", 4)), draft.edited(manifest("q", 5))];
  for (const each of asked.slice(-2).reverse()) {
    each.answer(answerTo(each.body));
    await turn();
  }
  await Promise.all(edits);
  equal(draft.intent.serving.replicas.frontend, 5);
  const late = draft.edited(manifest("q", 6));
  draft.replace({ ...INTENT, name: "preset" });
  asked.at(-1).answer(answerTo(asked.at(-1).body));
  await late;
  deepEqual(draft.intent, { ...INTENT, name: "preset" });
});

test("a form that could not be checked is checked again without a change", async () => {
  const { draft, asked, pass } = await begun(INTENT);
  asked[0].reject(new TypeError("failed to fetch"));
  await turn();
  equal(draft.problem, "The service cannot be reached.");
  await pass(3000);
  await pass(250);
  asked[1].answer({ type: "urn:dynamo:problem:busy", detail: "too many requests" }, 429);
  await turn();
  equal(draft.problem, "too many requests");
  await pass(3000);
  await pass(250);
  asked[2].answer(answerTo(asked[2].body));
  await turn();
  deepEqual([draft.problem, draft.answer.manifest.metadata.name], ["", "q"]);
});

test("what the form lacks is not asked for again and again", async () => {
  const { draft, asked, pass } = await begun(INTENT);
  asked[0].answer({ type: "urn:dynamo:problem:invalid", detail: "wrong", errors: [{ pointer: "/name", detail: "wrong" }] }, 422);
  await turn();
  await pass(60_000);
  await pass(250);
  deepEqual([asked.length, draft.errors.length], [1, 1]);
});

test("a manifest that cannot be read is something to correct, until it can be", async () => {
  const { draft, asked } = await begun(INTENT);
  asked[0].answer(answerTo(asked[0].body));
  await turn();
  draft.mistype("/manifest", "no spec");
  draft.give("/backend", "vllm");
  deepEqual(draft.errors, [{ pointer: "/manifest", detail: "no spec", source: null }]);
  draft.mistype("/manifest", "");
  deepEqual(draft.errors, []);
});

test("what is deployed is where it was when the person asked for it", async () => {
  const { draft, asked } = await begun(INTENT);
  asked[0].answer(answerTo(asked[0].body));
  await turn();
  draft.kept = [{ pointer: "/spec/replicas", value: 9 }];
  const deployed = draft.deploy();
  draft.open("b", { intent: { ...INTENT, mode: "objective" }, kept: [] });
  asked.at(-1).answer(answerTo(asked.at(-1).body));
  await turn();
  const { path, body, answer } = asked.at(-1);
  deepEqual([path, body.spec], ["/api/v1/namespaces/a/deployments", { replicas: 9 }]);
  answer({});
  deepEqual(await deployed, { namespace: "a", collection: "deployments", name: "q" });
});
