/* SPDX-License-Identifier: Apache-2.0

   Penstock's C API, also for other languages that can call C: sessions that run graphs, in this
   process or on a cluster; tensors; servers; op libraries. Installed as <penstock/c_api.h>.

   Ownership. The caller owns every PS_X* that a function returns, and frees it with PS_DeleteX.
   Pointers that a handle's getter returns are valid as long as the handle. Functions only borrow
   their arguments for the call, unless documented otherwise. PS_DeleteX(NULL) does nothing.
   Errors. A function that can fail returns NULL for success, or a PS_Status that describes the
   error; then it has written none of its results. Functions throw no exceptions, and a caller's
   mistake does not end the process; a detected bug of Penstock itself aborts it. Threads. Functions
   may be called from any thread. Several threads may use a handle at once, except to delete it;
   callers must synchronise access to a tensor's data. Versions. A program that was built for
   PS_ABI_VERSION n works with a library whose PS_AbiVersion() is n: adding functions does not raise
   it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PS_ABI_VERSION 1

/* Return the library's PS_ABI_VERSION, and its version: "0.1.0". */
int PS_AbiVersion(void);
const char* PS_Version(void);

/* --- Status: one error ----------------------------------------------------------------------- */

typedef struct PS_Status PS_Status;

/* The numbers of gRPC's status codes. */
typedef enum PS_Code {
  PS_CANCELLED = 1,
  PS_UNKNOWN = 2,
  PS_INVALID_ARGUMENT = 3,
  PS_DEADLINE_EXCEEDED = 4,
  PS_NOT_FOUND = 5,
  PS_ALREADY_EXISTS = 6,
  PS_PERMISSION_DENIED = 7,
  PS_RESOURCE_EXHAUSTED = 8,
  PS_FAILED_PRECONDITION = 9,
  PS_ABORTED = 10,
  PS_OUT_OF_RANGE = 11,
  PS_UNIMPLEMENTED = 12,
  PS_INTERNAL = 13,
  PS_UNAVAILABLE = 14,
  PS_DATA_LOSS = 15,
  PS_UNAUTHENTICATED = 16
} PS_Code;

PS_Code PS_StatusCode(const PS_Status* status);
/* Returns the message in UTF-8, terminated by a zero. */
const char* PS_StatusMessage(const PS_Status* status);
void PS_DeleteStatus(PS_Status* status);

/* --- Tensor: a typed, shaped block of memory ------------------------------------------------- */

typedef struct PS_Tensor PS_Tensor;
struct DLManagedTensor; /* dlpack.h 0.x; in Python the capsule "dltensor" holds one */

/* The numbers of TensorFlow's types. */
typedef enum PS_DType {
  PS_FLOAT = 1,
  PS_DOUBLE = 2,
  PS_INT32 = 3,
  PS_UINT8 = 4,
  PS_INT16 = 5,
  PS_INT8 = 6,
  PS_STRING = 7,
  PS_COMPLEX64 = 8,
  PS_INT64 = 9,
  PS_BOOL = 10,
  PS_BFLOAT16 = 14,
  PS_UINT16 = 17,
  PS_COMPLEX128 = 18,
  PS_HALF = 19,
  PS_UINT32 = 22,
  PS_UINT64 = 23
} PS_DType;

/* Makes a tensor in row-major order with uninitialised elements, of any type except PS_STRING.
   INVALID_ARGUMENT: the type, or a negative dimension; RESOURCE_EXHAUSTED: no memory. */
PS_Status* PS_NewTensor(PS_DType dtype, const int64_t* dims, int rank, PS_Tensor** tensor);
/* Makes a tensor of strings. Copies one string per element; string i has sizes[i] bytes.
   INVALID_ARGUMENT: a negative dimension, or NULL although there are strings to copy. */
PS_Status* PS_NewStringTensor(const int64_t* dims, int rank, const char* const* strings,
                              const size_t* sizes, PS_Tensor** tensor);
/* Takes over a DLPack tensor and wraps its memory without a copy. Its deleter runs, on any thread,
   when no tensor of Penstock uses the memory any more; do not write to the memory before that. On
   an error the caller keeps `managed`. INVALID_ARGUMENT: not in CPU memory, not row-major, not
   aligned to its elements, or a type that PS_DType lacks. Penstock only reads the memory, so it may
   be read-only: a variable that was assigned the tensor copies it before its first update. */
PS_Status* PS_TensorFromDLPack(struct DLManagedTensor* managed, PS_Tensor** tensor);
/* Makes a DLPack tensor that shares the tensor's memory and keeps it alive until the consumer calls
   the deleter. INVALID_ARGUMENT: strings have no DLPack type. Do not write to a tensor that was
   fetched: it may share memory with a variable. */
PS_Status* PS_TensorToDLPack(const PS_Tensor* tensor, struct DLManagedTensor** managed);

PS_DType PS_TensorDType(const PS_Tensor* tensor);
int PS_TensorRank(const PS_Tensor* tensor);
/* Returns the size of dimension i, 0 <= i < rank; -1 for another i. */
int64_t PS_TensorDim(const PS_Tensor* tensor, int i);
int64_t PS_TensorElements(const PS_Tensor* tensor);
/* Return a pointer to the elements in row-major order, and their size in bytes; NULL and 0 for
   strings. Write elements only before the tensor is fed for the first time, and never those of a
   fetched tensor.
 */
void* PS_TensorData(PS_Tensor* tensor);
size_t PS_TensorBytes(const PS_Tensor* tensor);
/* Returns string i of a tensor of strings, followed by a zero, and sets `*size` to its size in
   bytes. Returns NULL if i is out of range or the tensor is not of strings. */
const char* PS_TensorString(const PS_Tensor* tensor, int64_t i, size_t* size);
void PS_DeleteTensor(PS_Tensor* tensor);

/* --- Session: a graph, and functions that run steps of it ------------------------------------- */

typedef struct PS_Session PS_Session;
typedef struct PS_Cancellation PS_Cancellation;

/* Makes a session: in this process for the target "", otherwise on the cluster of the task at
   "grpc://host:port". Does not contact the task yet. `timeout_ms` is the timeout of calls that have
   none of their own; 0: a minute for calls that run no step, a day for steps of several tasks, none
   for steps of this process only. INVALID_ARGUMENT: another target, or a negative timeout. */
PS_Status* PS_NewSession(const char* target, int64_t timeout_ms, PS_Session** session);
/* Adds the nodes of a GraphDef, in protobuf's binary format, to the session's graph. On an error it
   adds none. */
PS_Status* PS_ExtendSession(PS_Session* session, const void* graph_def, size_t size);

/* One step. The length of each array is the number after it; the array is NULL if that is 0. */
typedef struct PS_Step {
  const char* const* feed_names; /* "x:0" or "x" */
  PS_Tensor* const* feeds;       /* only borrowed; may be fed again */
  int num_feeds;
  const char* const* fetch_names;
  int num_fetches;
  const char* const* targets; /* nodes to run without fetching */
  int num_targets;
  int64_t timeout_ms;            /* 0: the session's timeout */
  PS_Cancellation* cancellation; /* NULL: none */
} PS_Step;

/* Runs a step and waits for it. Writes `num_fetches` tensors to `fetched`; the caller must
   delete them. `step_size` is sizeof(PS_Step): later versions may add fields. An error of a step
   leaves the session usable. DEADLINE_EXCEEDED: the timeout; CANCELLED: PS_Cancel. UNAVAILABLE and
   ABORTED: a task was lost; make a new session and continue from the last checkpoint. */
PS_Status* PS_Run(PS_Session* session, const PS_Step* step, size_t step_size, PS_Tensor** fetched);
/* Cancels running steps, waits until they have ended, and frees the session's resources in this
   process and on the tasks. */
PS_Status* PS_CloseSession(PS_Session* session);
/* Closes the session, if it is open, and frees it. No thread may be in a call with it. */
void PS_DeleteSession(PS_Session* session);

/* PS_Cancel ends all steps that use this cancellation, both running ones and later ones. It may be
   called from any thread, and repeatedly. Delete the cancellation when these steps have returned.
 */
PS_Status* PS_NewCancellation(PS_Cancellation** cancellation);
void PS_Cancel(PS_Cancellation* cancellation);
void PS_DeleteCancellation(PS_Cancellation* cancellation);

/* --- Server: one task of a cluster ----------------------------------------------------------- */

typedef struct PS_Server PS_Server;

/* Makes a task and binds its port. `config` is JSON as in TF_CONFIG:
   {"cluster": {"ps": ["h:2220"], "worker": ["h:2221"]}, "task": {"type": "ps", "index": 0}}.
   Port 0 means any free port. INVALID_ARGUMENT: a mistake in `config`, or the port is taken. Loads
   the op libraries that the environment variable PENSTOCK_LOAD names, separated by commas. If one
   cannot be loaded, the call fails with the error of PS_LoadLibrary, prefixed with PENSTOCK_LOAD.
 */
PS_Status* PS_NewServer(const char* config, PS_Server** server);
/* Starts to serve. */
PS_Status* PS_StartServer(PS_Server* server);
/* Returns "grpc://host:port", for PS_NewSession. */
const char* PS_ServerTarget(const PS_Server* server);
/* Blocks until the task is asked to end, by PS_StopServer or by `penstock shutdown`. */
void PS_JoinServer(PS_Server* server);
/* Ends running steps and closes the port. */
void PS_StopServer(PS_Server* server);
/* Stops the server, if it runs, and frees it. No thread may be in a call with it. */
void PS_DeleteServer(PS_Server* server);

/* --- Ops -------------------------------------------------------------------------------------- */

/* Loads an op library (docs/custom-ops.md); it cannot be unloaded. Sessions and servers that are
   made later know its ops. NOT_FOUND: there is no such file; INVALID_ARGUMENT: it is not a valid op
   library; FAILED_PRECONDITION: it was built for another version; ALREADY_EXISTS: one of its ops or
   kernels exists already. */
PS_Status* PS_LoadLibrary(const char* path);

#ifdef __cplusplus
}
#endif
