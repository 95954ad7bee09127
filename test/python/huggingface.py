"""What torchrun starts: small random models of transformers, sharded against unsharded."""

import copy
import tempfile

import place
import pytest
import torch
import torch.distributed as dist
import transformers

import flux
from flux.nn import full_state_dict

COMMON = dict(vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=4,
              intermediate_size=72, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
MODELS = {
    "llama": lambda: transformers.LlamaConfig(**COMMON, attention_bias=True),
    "qwen2": lambda: transformers.Qwen2Config(**COMMON, tie_word_embeddings=True),
    "qwen3": lambda: transformers.Qwen3Config(**COMMON, head_dim=8),
    "mistral": lambda: transformers.MistralConfig(**COMMON, sliding_window=6),
    "gpt2": lambda: transformers.GPT2Config(vocab_size=40, n_embd=32, n_layer=2, n_head=8, n_positions=64, resid_pdrop=0,
                                            embd_pdrop=0, attn_pdrop=0, bos_token_id=1, eos_token_id=2, pad_token_id=0)}


def random_model(name):
    model = transformers.AutoModelForCausalLM.from_config(MODELS[name](), dtype=place.DTYPE)
    with torch.no_grad():  # biases too, and norms that differ from one
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.05)
    return model


def trained(model, tokens, steps=2):
    optimizer, losses = torch.optim.SGD(model.parameters(), 0.5), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def close(found, wanted):
    if place.CUDA:
        assert place.error(found, wanted) < 1e-2
    else:
        torch.testing.assert_close(found, wanted, rtol=2e-4, atol=2e-5)


def check_tokens(ours, whole, tokens, count=10):
    """What generate makes is the same, and in 16 bits the logits for what the whole model makes."""
    prompt = dict(input_ids=tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=count, do_sample=False)
    found, wanted = (model.generate(**prompt) for model in (ours, whole))
    if not place.CUDA:
        assert torch.equal(found, wanted)
    caches = [transformers.DynamicCache(config=model.config) for model in (ours, whole)]
    with torch.no_grad():
        for part in [tokens, *wanted[:, tokens.size(1):].split(1, 1)]:
            logits = [model(part, past_key_values=cache).logits for model, cache in zip((ours, whole), caches)]
            close(*logits)


def check(name, world, from_rows):
    torch.manual_seed(3)
    whole, tokens = random_model(name), torch.randint(3, 40, (3, 7))
    ours = flux.parallelize(copy.deepcopy(whole), world, sequence_parallel_from=from_rows)
    mine, everybody = (sum(p.numel() for p in model.parameters()) for model in (ours, whole))
    assert mine < 0.8 * everybody, "weights are divided"
    close(ours(tokens).logits, whole(tokens).logits)
    check_tokens(ours, whole, tokens, 3 if place.SHARED else 10)

    if name == "llama":
        ours.gradient_checkpointing_enable()
    ours.train(), whole.train()
    close(torch.tensor(trained(ours, tokens)), torch.tensor(trained(whole, tokens)))
    state = full_state_dict(ours, world)
    assert state.keys() == whole.state_dict().keys()
    for key, value in whole.state_dict().items():
        close(state[key], value)

    torch.manual_seed(4)
    other = random_model(name)
    ours.load_state_dict(other.state_dict())
    close(ours.eval()(tokens).logits, other.eval()(tokens).logits)


def check_files(world):
    ours = flux.parallelize(random_model("qwen2"), world).eval()
    tokens = torch.randint(3, 40, (2, 5))
    state = full_state_dict(ours, world)
    with tempfile.TemporaryDirectory() as folder:
        if dist.get_rank() == 0:  # others write nothing, as transformers has it too
            ours.save_pretrained(folder, state_dict=state)
            again = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=place.DTYPE).eval().to(place.ON)
    y = ours(tokens).logits
    if dist.get_rank() == 0:
        close(y, again(tokens).logits)


def check_refusals(world):
    with pytest.raises(flux.UnsupportedError, match="no list of decoder layers"):
        flux.parallelize(transformers.BertModel(transformers.BertConfig(num_hidden_layers=1, hidden_size=32,
                                                                        num_attention_heads=4, vocab_size=10)), world)
    few = transformers.LlamaConfig(**{**COMMON, "num_key_value_heads": 1})
    with pytest.raises(flux.InvalidError, match="8 heads and 1 key heads over"):
        flux.parallelize(transformers.LlamaForCausalLM(few), world)
    with pytest.raises(flux.InvalidError, match="World.from_torch"):
        flux.parallelize(random_model("gpt2"), flux.World.local(1)[0])


def main():
    place.start()
    for size in [4, 2] if dist.get_world_size() == 4 else [2]:
        world = place.world_of(size)
        for name in ["llama", "gpt2"] if place.SHARED else MODELS:
            for from_rows in (0, 10, 10**9):  # divided, only the prompt divided, whole
                check(name, world, from_rows)
    check_files(world)
    check_refusals(world)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
