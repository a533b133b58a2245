#!/bin/sh
# Compiles every model of a folder under the check: one small layer, but the ratio of heads that the
# model has; 4 heads where their width is not free.
#
#   each-model.sh MODELS OUT [option of tenon compile...]
set -eu
models=$1 out=$2
shift 2
for model in "$models"/*.yaml; do
  case $model in */tokenizers.yaml) continue ;; esac
  echo "model $model"
  heads=heads=4
  grep -q head_dim "$model" && heads=head_dim=16
  layers=layers=1
  grep -q encoder_layers "$model" && layers="encoder_layers=1 --set decoder_layers=1"
  tenon compile "$model" --verify-each-numerically --weights random:1 --emit sched -o "$out" --set $layers \
    --set hidden=64 --set $heads --set ffn=96 --set vocab=101 --set context=64 "$@" 2>&1
done
