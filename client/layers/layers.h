// SPDX-License-Identifier: Apache-2.0
//
// Layers: functions together with the variables that are their parameters. Make a layer once and
// call it many times, both for training and for evaluation:
//
//   const layers::Dense hidden(program, "hidden", 784, 128, {.activation = "Relu"});
//   Output y = hidden(x);
//
// Layers are value types that borrow their Program. Variables are NAME/kernel, NAME/bias and so on,
// as tf.layers names them. An invalid argument sets the program's error, which names the line that
// called the layer, or that made it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/embedding/lookup.h"
#include "client/embedding/partitioned_variable.h"
#include "client/program.h"

namespace penstock::client::layers {

struct DenseOptions {
  // an op with one input, such as "Relu", "Tanh" or "Sigmoid"; "": none
  std::string activation = "";
  bool bias = true;
  Initializer kernel = GlorotUniform();
  DType dtype = DType::kFloat;
};

// Computes activation(x * kernel + bias), for x of shape [..., inputs].
class Dense {
 public:
  Dense(Program& program, const std::string& name, int64_t inputs, int64_t units,
        const DenseOptions& options = {}, SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  Output operator()(const LocatedOutput& x) const;
  const Variable& kernel() const { return kernel_; }

 private:
  const DenseOptions options_;
  const std::string scope_;
  const int64_t units_;
  Variable kernel_;
  std::optional<Variable> bias_;
};

// Looks up rows of a table of shape [rows, units], which may be partitioned like a
// PartitionedVariable.
class Embedding {
 public:
  Embedding(Program& program, const std::string& name, int64_t rows, int64_t units,
            const PartitionedVariableOptions& options = {},
            const Initializer& initializer = RandomUniform(-0.05, 0.05),
            SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  Output operator()(const LocatedOutput& ids) const { return EmbeddingLookup(table_, ids); }
  Output operator()(const IdLists& lists, const EmbeddingLookupSparseOptions& options = {},
                    SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const {
    return EmbeddingLookupSparse(table_, lists, options, line);
  }
  const PartitionedVariable& table() const { return table_; }

 private:
  PartitionedVariable table_;
};

// Sets each element to 0 with probability `rate` and scales the others by 1 / (1 - rate), so the
// mean stays the same. For training only. `rate` must be in [0, 1). If the seed is 0, different
// elements are dropped in each run.
Output Dropout(const LocatedOutput& x, double rate, int64_t seed = 0);

struct ConvOptions {
  int64_t stride = 1;
  std::string padding = "SAME";  // "SAME" or "VALID"
  std::string activation = "";
  bool bias = true;
  Initializer kernel = GlorotUniform();
};

// A convolution of pictures [batch, height, width, inputs] with `units` square filters.
class Conv {
 public:
  Conv(Program& program, const std::string& name, int64_t inputs, int64_t units, int64_t size,
       const ConvOptions& options = {}, SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  Output operator()(const LocatedOutput& x) const;

 private:
  const ConvOptions options_;
  const std::string scope_;
  Variable kernel_;
  std::optional<Variable> bias_;
};

struct BatchNormOptions {
  double momentum = 0.99;  // the decay of the moving statistics
  double epsilon = 1e-3;
};

// Normalises each channel (the last dimension) to mean 0 and variance 1, then scales and shifts it
// by learnt values. float32 only.
class BatchNorm {
 public:
  BatchNorm(Program& program, const std::string& name, int64_t channels,
            const BatchNormOptions& options = {},
            SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  // Normalises with the statistics of this batch. The train op must also run `updates`, which
  // update the moving statistics: program.Group({train, ...}).
  struct Training {
    Output y;
    Outputs updates;
  };
  Training ForTraining(const LocatedOutput& x) const;
  // Normalises with the moving statistics.
  Output operator()(const LocatedOutput& x) const;

 private:
  Outputs Normalize(Output x, bool training) const;
  const BatchNormOptions options_;
  const std::string scope_;
  const int64_t channels_;
  Variable gamma_, beta_, mean_, variance_;
};

// Normalises the last dimension to mean 0 and variance 1, then scales and shifts it.
class LayerNorm {
 public:
  LayerNorm(Program& program, const std::string& name, int64_t units, double epsilon = 1e-3,
            DType dtype = DType::kFloat, SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  Output operator()(const LocatedOutput& x) const;

 private:
  const double epsilon_;
  const std::string scope_;
  Variable gamma_, beta_;
};

}  // namespace penstock::client::layers
