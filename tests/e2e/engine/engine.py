"""A stand-in for an engine without Dynamo: a gRPC server like vLLM's for Dynamo's sidecar. Answers repeat one word.

Arguments: the folder of the model, and the model's name.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import vllm_pb2 as vllm  # type: ignore[import-not-found] # generated where the pod is made
import vllm_pb2_grpc as services  # type: ignore[import-not-found]
from grpc_health.v1 import health, health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

#: Also for the kubelet, which connects from outside the pod.
ADDRESS = "0.0.0.0:50051"
#: The finish reason of an answer with the requested length.
LENGTH = 1


class Engine(services.ControlServicer, services.InferenceServicer):  # type: ignore[misc]
    def GetServerInfo(self, _request: Any, _context: Any) -> Any:  # noqa: N802 - names of vLLM
        return vllm.ServerInfo(api_version="vllm", max_model_len=2048)

    def GetModelInfo(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        model, name = sys.argv[1:]
        return vllm.ModelInfo(model_id=model, served_model_name=name, supports_token_ids_input=True)

    def GetKvEventSources(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return vllm.Nothing()

    def GenerateStream(self, request: Any, _context: Any) -> Iterator[Any]:  # noqa: N802
        count = request.stopping.max_new_tokens
        finish = vllm.Finish(num_output_tokens=count, finish_reason=LENGTH)
        text, tokens = "played " * count, [42] * count
        yield vllm.Response(outputs=vllm.Output(text=text, num_tokens=count, token_ids=tokens, finish_info=finish))


server, engine, states = grpc.server(ThreadPoolExecutor(8)), Engine(), health.HealthServicer()
for service in ("vllm.Control", "vllm.Inference"):
    states.set(service, health_pb2.HealthCheckResponse.SERVING)
health_pb2_grpc.add_HealthServicer_to_server(states, server)
services.add_ControlServicer_to_server(engine, server)
services.add_InferenceServicer_to_server(engine, server)
server.add_insecure_port(ADDRESS)
server.start()
server.wait_for_termination()
