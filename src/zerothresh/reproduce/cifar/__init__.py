"""The paper's few-pixel attacks on CIFAR-10."""
