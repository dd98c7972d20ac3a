"""Runs a model: ONNX Runtime, TensorRT, or a fake for tests."""
