// Preset intents: the examples of the examples folder, and two objectives.
import type { Any } from "../api/client.ts";

export interface Preset {
  title: string;
  about: string;
  intent: Any;
}

const SMALL = { name: "Qwen/Qwen3-0.6B" };
const ENGINES = { vllm: "vLLM", sglang: "SGLang", trtllm: "TensorRT-LLM" };

const ofExamples = (Object.entries(ENGINES) as [string, string][]).flatMap(([backend, title]) => [
  {
    title: `${title}, aggregated`,
    about: "One GPU: each worker reads prompts and writes answers.",
    intent: { mode: "graph", name: `${backend}-agg`, model: SMALL, backend, serving: { mode: "aggregated" } },
  },
  {
    title: `${title}, disaggregated`,
    about: "Two GPUs: long prompts do not hold up running answers.",
    intent: { mode: "graph", name: `${backend}-disagg`, model: SMALL, backend, serving: { mode: "disaggregated" } },
  },
]);

export const PRESETS: Preset[] = [
  ...ofExamples,
  {
    title: "Chat, fast",
    about: "Qwen3-32B, first token within 600 ms, 33 tokens a second.",
    intent: {
      mode: "objective",
      name: "qwen32-chat",
      model: { name: "Qwen/Qwen3-32B" },
      hardware: { totalGpus: 16 },
      workload: { isl: 4000, osl: 1000 },
      objective: { ttftMs: 600, itlMs: 30 },
    },
  },
  {
    title: "Batch, cheap",
    about: "Llama 3.1 8B, as many tokens a GPU as possible.",
    intent: {
      mode: "objective",
      name: "llama8-batch",
      model: { name: "meta-llama/Llama-3.1-8B-Instruct" },
      backend: "vllm",
      hardware: { totalGpus: 8 },
      objective: { optimizeFor: "throughput" },
    },
  },
];
