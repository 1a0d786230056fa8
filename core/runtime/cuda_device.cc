// SPDX-License-Identifier: Apache-2.0
//
// A GPU as a Device. Kernels and copies to the GPU run in one compute stream, in the order in which
// the executor launches them. Copies to the host run in a second stream, ordered after the first by
// an event, so that a kernel launched later need not wait for them. Memory comes from the driver's
// stream-ordered pool: freeing is an operation in the stream, and no allocation waits for the GPU.
#include "core/runtime/cuda_device.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "core/op/cuda_handles.h"
#include "core/runtime/cuda_completions.h"
#include "core/runtime/cuda_memory.h"

namespace penstock {
namespace {

Status CudaError(cudaError_t error, string_view doing) {
  if (error == cudaSuccess) return OkStatus();
  return Internal(doing, ": CUDA: ", cudaGetErrorString(error));
}

class CudaDevice final : public Device {
 public:
  CudaDevice(DeviceInfo info, int ordinal) : Device(std::move(info)), ordinal_(ordinal) {}
  ~CudaDevice() override;
  // Does all initialisation that may fail.
  Status Init();

  Allocator& allocator() override { return *allocator_; }
  void* stream() override { return compute_; }
  void* kernel_handles() override { return &handles_; }
  bool asynchronous() const override { return true; }
  void UseOnThisThread() override { cudaSetDevice(ordinal_); }
  void CopyToHost(const Tensor& from, Tensor* to, Done done) override;
  void CopyFromHost(const Tensor& from, Tensor* to, Done done) override;
  Status Synchronize() override;

 private:
  Status StartCopyToHost(const Tensor& from, Tensor* to);
  Status StartCopyFromHost(const Tensor& from, Tensor* to);

  const int ordinal_;
  cudaStream_t compute_ = nullptr;
  cudaStream_t to_host_ = nullptr;
  cublasHandle_t cublas_ = nullptr;
  CudaHandles handles_;
  std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<CudaCompletions> completions_;
};

CudaDevice::~CudaDevice() {
  completions_ = nullptr;  // waits until running copies have ended
  UseOnThisThread();
  resources().ClearAll();  // variables hold memory of the pool
  if (cublas_ != nullptr) cublasDestroy(cublas_);
  if (compute_ != nullptr) cudaStreamSynchronize(compute_);
  if (to_host_ != nullptr) cudaStreamDestroy(to_host_);
  if (compute_ != nullptr) cudaStreamDestroy(compute_);
}

Status CudaDevice::Init() {
  RETURN_IF_ERROR(CudaError(cudaSetDevice(ordinal_), "choosing the GPU"));
  for (cudaStream_t* stream : {&compute_, &to_host_}) {
    RETURN_IF_ERROR(
        CudaError(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), "making a stream"));
  }
  ASSIGN_OR_RETURN(allocator_, MakeCudaAllocator(ordinal_, compute_));
  if (cublasCreate(&cublas_) != CUBLAS_STATUS_SUCCESS ||
      cublasSetStream(cublas_, compute_) != CUBLAS_STATUS_SUCCESS) {
    return Internal("cuBLAS does not start on GPU ", ordinal_);
  }
  handles_.blas = cublas_;
  completions_ = std::make_unique<CudaCompletions>(ordinal_);
  return OkStatus();
}

Status CudaDevice::Synchronize() {
  return CudaError(cudaStreamSynchronize(compute_), "waiting for the GPU");
}

void CudaDevice::CopyToHost(const Tensor& from, Tensor* to, Done done) {
  const Status started = StartCopyToHost(from, to);
  if (!started.ok()) {
    *to = Tensor();
    return std::move(done)(started);
  }
  completions_->After(to_host_, from, std::move(done));
}

Status CudaDevice::StartCopyToHost(const Tensor& from, Tensor* to) {
  ASSIGN_OR_RETURN(*to, Tensor::Make(PinnedAllocator(), from.dtype(), from.shape()));
  RETURN_IF_ERROR(completions_->Order(compute_, to_host_));
  return CudaError(cudaMemcpyAsync(to->mutable_raw_data(), from.raw_data(), from.bytes(),
                                   cudaMemcpyDeviceToHost, to_host_),
                   "copying to the host");
}

void CudaDevice::CopyFromHost(const Tensor& from, Tensor* to, Done done) {
  const Status started = StartCopyFromHost(from, to);
  if (!started.ok()) {
    *to = Tensor();
    return std::move(done)(started);
  }
  completions_->After(compute_, from, std::move(done));
}

Status CudaDevice::StartCopyFromHost(const Tensor& from, Tensor* to) {
  if (!IsPlain(from.dtype())) {
    return InvalidArgument("a ", Name(from.dtype()), " cannot live on a GPU");
  }
  ASSIGN_OR_RETURN(*to, Tensor::Make(*allocator_, from.dtype(), from.shape()));
  return CudaError(cudaMemcpyAsync(to->mutable_raw_data(), from.raw_data(), from.bytes(),
                                   cudaMemcpyHostToDevice, compute_),
                   "copying to the GPU");
}

// Returns true if there is no driver, or a driver without a GPU: this is not an error.
bool IsWithoutGpu(cudaError_t error) {
  return error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver ||
         error == cudaErrorStubLibrary || error == cudaErrorInitializationError ||
         error == cudaErrorSystemNotReady || error == cudaErrorOperatingSystem;
}

StatusOr<DeviceInfo> Describe(const DeviceOptions& options, int ordinal) {
  cudaDeviceProp properties;
  RETURN_IF_ERROR(
      CudaError(cudaGetDeviceProperties(&properties, ordinal), "asking the GPU what it is"));
  char bus[32] = "";
  cudaDeviceGetPCIBusId(bus, sizeof(bus), ordinal);
  DeviceInfo info = {.name = options.task, .incarnation = options.incarnation};
  info.name.type = "GPU";
  info.name.index = ordinal;
  info.rates = DefaultRates("GPU");
  info.memory_limit = static_cast<int64_t>(properties.totalGlobalMem);
  info.description = StrCat("device: ", ordinal, ", name: ", properties.name, ", pci bus id: ", bus,
                            ", compute capability: ", properties.major, ".", properties.minor);
  return info;
}

}  // namespace

Status AppendCudaDevices(const DeviceOptions& options,
                         std::vector<std::unique_ptr<Device>>* devices) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (IsWithoutGpu(error) || (error == cudaSuccess && count == 0)) {
    std::fprintf(stderr, "penstock: no GPU, running on the CPU (CUDA: %s)\n",
                 cudaGetErrorString(error));
    return OkStatus();
  }
  RETURN_IF_ERROR(CudaError(error, "looking for GPUs"));
  for (int i = 0; i < count && i < options.gpus_max; ++i) {
    ASSIGN_OR_RETURN(DeviceInfo info, Describe(options, i));
    auto device = std::make_unique<CudaDevice>(std::move(info), i);
    RETURN_IF_ERROR(device->Init());
    devices->push_back(std::move(device));
  }
  return OkStatus();
}

}  // namespace penstock
