"""Simulation parameters from which the planner gets models of its engines if nothing was measured."""

from typing import Annotated

from pydantic import Field

from dynamo_shared.api.contracts.base import ContractModel, Whole

Count = Annotated[Whole, Field(ge=1)]


class Pick(ContractModel):
    """How one engine uses several GPUs."""

    tp: Count = 1
    """Tensor parallel size."""
    pp: Count = 1
    """Pipeline parallel size."""
    dp: Count = 1
    """Attention data parallel size."""
    moe_tp: Count = 1
    """Tensor parallel size of the experts."""
    moe_ep: Count = 1
    """Expert parallel size."""

    @property
    def gpus(self) -> int:
        """GPUs of one engine: the number of pipeline stages times the width of the widest stage."""
        return self.pp * max(self.tp, self.dp, self.moe_tp * self.moe_ep)


class AicInterpolation(ContractModel):
    """A sweep of AI Configurator: model, GPU and engine, lengths, and the granularity of its grid."""

    hf_id: str = Field(min_length=1)
    """Model on Hugging Face."""
    system: str = Field(min_length=1)
    """GPU, such as `h200_sxm`."""
    backend: str = Field(min_length=1)
    """Engine: vllm, sglang or trtllm."""
    isl: Count
    """Input tokens of a request."""
    osl: Count
    """Output tokens of a request."""
    sweep_max_context_length: Count
    """Longest context in the sweep, tokens."""
    prefill_interpolation_granularity: Count = 16
    """Points of the prefill curve."""
    decode_interpolation_granularity: Count = 6
    """Points of each axis of the decode surface."""
    prefill_pick: Pick = Pick()
    """The prefill engine."""
    decode_pick: Pick = Pick()
    """The decode engine."""
