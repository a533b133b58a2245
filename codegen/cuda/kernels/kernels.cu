// Every kernel: what the text that the backend writes for a model includes.
#include "device.h"

#include "attention.cu"
#include "elementwise.cu"
#include "embedding.cu"
#include "experts.cu"
#include "gated_mlp.cu"
#include "kv_append.cu"
#include "linear.cu"
#include "norm.cu"
#include "rope.cu"
#include "rope_attention.cu"
#include "routing.cu"
