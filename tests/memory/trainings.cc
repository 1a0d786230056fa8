// SPDX-License-Identifier: Apache-2.0
#include "tests/memory/trainings.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "client/examples/fashion_mnist_model.h"
#include "client/initializers.h"
#include "client/rnn.h"
#include "client/variable.h"
#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "core/compiler/compile.h"
#include "core/op/gradient.h"
#include "core/tensor/memory_account.h"

namespace penstock {
namespace {

using client::GlorotUniform;
using client::Variable;

Tensor Numbers(const Shape& shape) {
  Tensor numbers(DType::kFloat, shape);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (float& number : numbers.mutable_flat<float>()) number = uniform(random);
  return numbers;
}

Tensor Bytes(const Shape& shape, int below) {
  Tensor bytes(DType::kUint8, shape);
  std::mt19937 random(2);
  for (uint8_t& byte : bytes.mutable_flat<uint8_t>()) byte = static_cast<uint8_t>(random() % below);
  return bytes;
}

Output Ask(Training* training, const Tensor& value) {
  Dims dims(value.shape().dims().begin(), value.shape().dims().end());
  dims[0] = -1;  // the size of the batch is not known
  const Output asked = CallIn(training->program, "Placeholder", {},
                              {{"dtype", value.dtype()}, {"shape", *PartialShape::Make(dims)}});
  training->feeds.push_back({asked, value});
  return asked;
}

void Finish(Training* training, Output loss) {
  training->loss = loss;
  training->optimizer = std::make_unique<client::Adam>(0.001);
  training->train = training->optimizer->Minimize(training->program, loss);
  training->init = training->program.Initialize(training->program.globals());
}

Output SquaredMean(Training* training, Output x, int64_t width) {
  const Variable w(training->program, "out", {width, 1}, GlorotUniform(99));
  const Output axes = Constant(training->program, Tensor::Vector<int32_t>({0, 1}));
  return Mean(Square(MatMul(x, w)), axes);
}

}  // namespace

std::unique_ptr<Training> FashionConvnet(int64_t batch) {
  auto training = std::make_unique<Training>();
  const Output images = Ask(training.get(), Bytes({batch, 28, 28}, 256));
  const Output labels = Ask(training.get(), Bytes({batch}, 10));
  const auto model = examples::MakeModel(training->program, "convnet", 7);
  CHECK_OK(model.status());
  Finish(training.get(), examples::Measure((*model)(images), labels).loss);
  return training;
}

std::unique_ptr<Training> DeepConvnet(int layers, int64_t batch) {
  constexpr int64_t kChannels = 8, kSide = 28;
  auto training = std::make_unique<Training>();
  const std::vector<int64_t> one = {1, 1, 1, 1};
  Output x = Ask(training.get(), Numbers({batch, kSide, kSide, 1}));
  for (int i = 0; i < layers; ++i) {
    const Variable w(training->program, StrCat("filters", i),
                     {3, 3, i == 0 ? 1 : kChannels, kChannels}, GlorotUniform(i + 1));
    x = Call("Relu", {Call("Conv2D", {x, w}, {{"strides", one}, {"padding", "SAME"}})});
  }
  constexpr int64_t kWidth = kSide * kSide * kChannels;
  const Output shape = Constant(training->program, Tensor::Vector<int32_t>({-1, kWidth}));
  Finish(training.get(), SquaredMean(training.get(), Reshape(x, shape), kWidth));
  return training;
}

std::unique_ptr<Training> UnrolledLstm(int steps, int64_t batch, int64_t units) {
  auto training = std::make_unique<Training>();
  const client::LstmCell cell(training->program, "lstm", units, units, {.seed = 5});
  const client::RnnFunction step = cell.Read();
  Tensor nothing(DType::kFloat, Shape({batch, units}));
  std::ranges::fill(nothing.mutable_flat<float>(), 0.0f);
  const Output zeros = Constant(training->program, std::move(nothing));
  Outputs state = {zeros, zeros};
  for (int i = 0; i < steps; ++i) {
    state = step(Ask(training.get(), Numbers({batch, units})), state).state;
  }
  Finish(training.get(), SquaredMean(training.get(), state[1], units));
  return training;
}

StatusOr<Trained> Train(const Training& training, const SessionOptions& options, int steps) {
  ASSIGN_OR_RETURN(const auto session, client::Session::New(training.program, "", options));
  RETURN_IF_ERROR(session->Execute(training.init));
  MemoryAccount& task = MemoryAccount::Task();
  Trained trained;
  trained.step_ms = std::numeric_limits<double>::max();
  for (int i = 0; i < steps; ++i) {
    const int64_t before = task.in_use();
    task.ResetPeak();
    const int64_t begin_ns = Env::Real().NowNanos();
    ASSIGN_OR_RETURN(const std::vector<Tensor> loss,
                     session->Run(training.feeds, {training.loss}, {training.train}));
    trained.step_ms =
        std::min(trained.step_ms, static_cast<double>(Env::Real().NowNanos() - begin_ns) / 1e6);
    trained.peak_bytes = task.peak() - before;
    trained.losses.push_back(loss[0].scalar<float>());
  }
  for (const Variable& variable : training.program.globals()) {
    ASSIGN_OR_RETURN(const Tensor value, session->Fetch(variable));
    trained.variables.push_back(value.Clone());
  }
  return trained;
}

StatusOr<MemoryReport> Predict(const Training& training, int64_t limit) {
  ASSIGN_OR_RETURN(const auto session, client::Session::New(training.program));
  ASSIGN_OR_RETURN(const std::vector<DeviceInfo> devices, session->ListDevices());
  CompileOptions options{.memory_limit = limit,
                         .env = &Env::Real(),
                         .threads = &Scheduler::Real(),
                         .client_device = devices.at(0).name,
                         .predict = true};
  for (const client::Feed& feed : training.feeds) {
    ASSIGN_OR_RETURN(TensorName name, TensorName::Parse(feed.tensor.name));
    options.feeds.push_back(std::move(name));
    options.feed_shapes.emplace_back(feed.value.shape());
  }
  ASSIGN_OR_RETURN(TensorName loss, TensorName::Parse(training.loss.name()));
  ASSIGN_OR_RETURN(const TensorName train, TensorName::Parse(training.train.name()));
  options.fetches = {std::move(loss)};
  options.targets = {train.node};
  CompileReport report;
  RETURN_IF_ERROR(Compile(training.program.graph(), devices, options, &report).status());
  return std::move(report.memory);
}

bool SameResults(const Trained& a, const Trained& b) {
  if (a.losses.size() != b.losses.size() || a.variables.size() != b.variables.size()) return false;
  if (std::memcmp(a.losses.data(), b.losses.data(), a.losses.size() * sizeof(float)) != 0) {
    return false;
  }
  for (size_t i = 0; i < a.variables.size(); ++i) {
    const Tensor &x = a.variables[i], &y = b.variables[i];
    if (x.shape() != y.shape() || std::memcmp(x.raw_data(), y.raw_data(), x.bytes()) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace penstock
