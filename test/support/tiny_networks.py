"""Tiny networks of random weights that transformers itself builds and saves; for tests."""

from support.libraries import Lazy

torch, hf = Lazy('torch'), Lazy('transformers')

WORDS = ['cup', 'floor', 'shelf', 'sofa', 'table', 'wall', 'an', 'image', 'of', '.', 'a']
_LAYERS = {'hidden_size': 16, 'num_hidden_layers': 1, 'num_attention_heads': 2}
_TEXT = {**_LAYERS, 'intermediate_size': 16, 'vocab_size': 40, 'max_position_embeddings': 16}
_VISION = {**_LAYERS, 'intermediate_size': 16, 'image_size': 32, 'patch_size': 16}


def _tokenizer(folder, **options):
    """A vocabulary of whole words."""
    folder.mkdir(parents=True, exist_ok=True)
    special = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    (folder / 'vocab.txt').write_text('\n'.join([*special, *WORDS]))
    return hf.BertTokenizer(str(folder / 'vocab.txt'), **options)


def clip(folder):
    """Image and text features of 8 dimensions."""
    torch.manual_seed(0)
    ends = {'bos_token_id': 2, 'eos_token_id': 3, 'pad_token_id': 0}
    config = hf.CLIPConfig(text_config={**_TEXT, **ends}, vision_config=_VISION, projection_dim=8)
    hf.CLIPModel(config).save_pretrained(folder)
    size = {'height': 32, 'width': 32}
    hf.CLIPImageProcessorPil(size=size, crop_size=size).save_pretrained(folder)
    _tokenizer(folder).save_pretrained(folder)
    return folder


def mask2former(folder):
    """A segment of three classes; random masks of more queries would cancel each other."""
    torch.manual_seed(0)
    backbone = hf.SwinConfig(
        image_size=32,
        patch_size=4,
        embed_dim=8,
        depths=[1, 1, 1, 1],
        num_heads=[1, 1, 1, 1],
        window_size=4,
        out_features=['stage1', 'stage2', 'stage3', 'stage4'],
    )
    config = hf.Mask2FormerConfig(
        backbone_config=backbone,
        feature_size=32,
        mask_feature_size=32,
        hidden_dim=32,
        encoder_feedforward_dim=16,
        dim_feedforward=16,
        encoder_layers=1,
        decoder_layers=2,
        num_attention_heads=2,
        num_queries=1,
        num_labels=3,
    )
    model = hf.Mask2FormerForUniversalSegmentation(config)
    with torch.no_grad():
        # Random weights are never sure, and unsure pixels are not a segment.
        model.class_predictor.bias[0] = 10.0
    model.save_pretrained(folder)
    size = {'height': 64, 'width': 64}
    hf.Mask2FormerImageProcessorPil(size=size).save_pretrained(folder)
    return folder


def sam(folder):
    """Masks for points and boxes."""
    torch.manual_seed(0)
    patches = {'image_size': 64, 'patch_size': 16}
    config = hf.SamConfig(
        vision_config={
            **_LAYERS,
            **patches,
            'output_channels': 16,
            'mlp_dim': 16,
            'window_size': 2,
            'global_attn_indexes': [0],
            'num_pos_feats': 8,
        },
        prompt_encoder_config={**patches, 'hidden_size': 16, 'mask_input_channels': 4},
        mask_decoder_config={**_LAYERS, 'mlp_dim': 16, 'iou_head_hidden_dim': 16},
    )
    hf.SamModel(config).save_pretrained(folder)
    edge = {'longest_edge': 64}
    square = {'height': 64, 'width': 64}
    processor = hf.SamImageProcessorPil(size=edge, pad_size=square, mask_pad_size=square)
    hf.SamProcessor(processor).save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def owl(folder):
    """Boxes of the objects that a text names."""
    torch.manual_seed(0)
    config = hf.OwlViTConfig(text_config=_TEXT, vision_config=_VISION, projection_dim=16)
    hf.OwlViTForObjectDetection(config).save_pretrained(folder)
    size = {'height': 32, 'width': 32}
    processor = hf.OwlViTImageProcessorPil(size=size, crop_size=size)
    tokenizer = _tokenizer(folder, model_max_length=16)
    hf.OwlViTProcessor(processor, tokenizer).save_pretrained(folder)
    return folder


def segformer(folder, names):
    """A class for every pixel."""
    torch.manual_seed(0)
    config = hf.SegformerConfig(
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 8, 8, 8],
        num_attention_heads=[1, 1, 1, 1],
        decoder_hidden_size=8,
        id2label=dict(enumerate(names)),
        label2id={name: row for row, name in enumerate(names)},
    )
    hf.SegformerForSemanticSegmentation(config).save_pretrained(folder)
    size = {'height': 64, 'width': 64}
    hf.SegformerImageProcessorPil(size=size).save_pretrained(folder)
    return folder
