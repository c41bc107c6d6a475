"""Networks of published sizes with random weights: they cost what trained ones cost."""

from pathlib import Path

import torch
import transformers as hf

WORDS = ('an', 'image', 'of')


def save_clip(folder: Path, words: list[str], small: bool) -> str:
    """Save image and text towers of the size of CLIP ViT-H/14 (986 million weights)."""
    vision = {'hidden_size': 1280, 'intermediate_size': 5120, 'num_hidden_layers': 32}
    text = {'hidden_size': 1024, 'intermediate_size': 4096, 'num_hidden_layers': 24}
    if small:
        vision, text = ({**item, 'num_hidden_layers': 1} for item in (vision, text))
    config = hf.CLIPConfig(
        vision_config={**vision, 'num_attention_heads': 16, 'patch_size': 14, 'image_size': 224},
        text_config={
            **text,
            'num_attention_heads': 16,
            'vocab_size': 49408,
            'bos_token_id': 2,
            'eos_token_id': 3,
            'pad_token_id': 0,
        },
        projection_dim=1024,
    )
    _save(hf.CLIPModel, config, folder)
    hf.CLIPImageProcessor().save_pretrained(folder)
    special = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    known = sorted({part for word in words for part in word.lower().split()} - set(WORDS))
    (folder / 'vocab.txt').write_text('\n'.join([*special, *WORDS, *known]), encoding='utf-8')
    hf.BertTokenizer(str(folder / 'vocab.txt')).save_pretrained(folder)
    return str(folder)


def save_sam(folder: Path, small: bool) -> str:
    """Save a network of the size of SAM 2.1 Hiera-L (224 million weights)."""
    blocks = [1, 1, 1, 1] if small else [2, 6, 36, 4]
    widths = [144, 288, 576, 1152]
    backbone = hf.Sam2HieraDetConfig(
        hidden_size=144,
        num_attention_heads=2,
        blocks_per_stage=blocks,
        embed_dim_per_stage=widths,
        num_attention_heads_per_stage=[2, 4, 8, 16],
        window_size_per_stage=[8, 4, 16, 8],
        global_attention_blocks=[] if small else [23, 33, 43],
    )
    vision = hf.Sam2VisionConfig(backbone_config=backbone, backbone_channel_list=widths[::-1])
    _save(hf.Sam2Model, hf.Sam2Config(vision_config=vision), folder)
    hf.Sam2ImageProcessor().save_pretrained(folder)
    return str(folder)


def save_mask2former(folder: Path, small: bool) -> str:
    """Save a network of the size of Mask2Former with Swin-L and 200 queries (216 million)."""
    backbone = hf.SwinConfig(
        image_size=384,
        embed_dim=192,
        depths=[1, 1, 1, 1] if small else [2, 2, 18, 2],
        num_heads=[6, 12, 24, 48],
        window_size=12,
        out_features=['stage1', 'stage2', 'stage3', 'stage4'],
    )
    config = hf.Mask2FormerConfig(backbone_config=backbone, num_queries=200, num_labels=150)
    _save(hf.Mask2FormerForUniversalSegmentation, config, folder)
    hf.Mask2FormerImageProcessorPil(size={'height': 640, 'width': 640}).save_pretrained(folder)
    return str(folder)


def _save(network: type, config: hf.PreTrainedConfig, folder: Path) -> None:
    torch.manual_seed(0)
    network(config).half().save_pretrained(folder)
