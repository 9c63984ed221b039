// All tests of the page's logic, for Node's own runner: `python -m tools.page test`.
import "./sse.ts";
import "./stream.ts";
import "./snapshot.ts";
import "./collection.ts";
import "./rows.ts";
import "./roles.ts";
import "./drafts.ts";
import "./route.ts";
import "./words.ts";
import "./deploy.ts";
import "./draft.ts";
import "./left.ts";
import "./talk.ts";
import "./replay.ts";
import "./yaml.ts";
import "./pods.ts";
import "./changes.ts";
