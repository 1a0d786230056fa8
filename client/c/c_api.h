/* SPDX-License-Identifier: Apache-2.0

   Penstock for C, and for every language that calls C: sessions that run graphs, here or on a
   cluster, tensors, servers, op libraries. Installed as <penstock/c_api.h>.

   Ownership. Every PS_X* that a function gives out is the caller's, who ends it with PS_DeleteX.
   Pointers that a handle's getter returns live as long as the handle. Arguments are only borrowed
   for the call, unless the function says that it takes them. PS_DeleteX(NULL) does nothing.
   Errors. A function that can fail returns NULL, or a PS_Status that says what went wrong; then it
   has written none of its results. No exception crosses, and no mistake of a caller ends the
   process; a bug of Penstock's own that it notices aborts it. Threads. Functions may be called from
   any thread. A handle may be used by several threads at once, but for its deletion; a tensor's
   data is the callers' to share. Versions. A program that was built for PS_ABI_VERSION n works with
   a library whose PS_AbiVersion() is n: functions are added without raising it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PS_ABI_VERSION 1

/* The library's PS_ABI_VERSION, and its version: "0.1.0". */
int PS_AbiVersion(void);
const char* PS_Version(void);

/* --- Status: one error ----------------------------------------------------------------------- */

typedef struct PS_Status PS_Status;

/* gRPC's numbers. */
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
/* UTF-8, ended by a zero. */
const char* PS_StatusMessage(const PS_Status* status);
void PS_DeleteStatus(PS_Status* status);

/* --- Tensor: a typed, shaped block of memory ------------------------------------------------- */

typedef struct PS_Tensor PS_Tensor;
struct DLManagedTensor; /* of dlpack.h, version 0.x: what the capsule "dltensor" holds in Python */

/* TensorFlow's numbers. */
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

/* Makes a tensor in row-major order, whose elements are still to be written: any type but
   PS_STRING. INVALID_ARGUMENT: the type, or a negative dimension; RESOURCE_EXHAUSTED: no memory. */
PS_Status* PS_NewTensor(PS_DType dtype, const int64_t* dims, int rank, PS_Tensor** tensor);
/* Makes a tensor of strings: as many as the dimensions say, of `sizes` bytes each. Copies them.
   INVALID_ARGUMENT: a negative dimension, or NULL where there are strings to copy. */
PS_Status* PS_NewStringTensor(const int64_t* dims, int rank, const char* const* strings,
                              const size_t* sizes, PS_Tensor** tensor);
/* Wraps the memory of a DLPack tensor without a copy and takes it over: its deleter runs when no
   tensor of Penstock uses it any more, on any thread. On an error it stays the caller's.
   INVALID_ARGUMENT: not in CPU memory, not row-major, or a type that tensors do not have. Nobody
   may write the memory until then. Penstock itself only reads it, so it may be read-only: a
   variable that was assigned the tensor is copied before its first update. */
PS_Status* PS_TensorFromDLPack(struct DLManagedTensor* managed, PS_Tensor** tensor);
/* Gives the tensor out as a DLPack tensor that shares its memory, and keeps that alive until the
   consumer calls the deleter. INVALID_ARGUMENT: strings have no DLPack type. A tensor that was
   fetched may share memory with a variable: read it only. */
PS_Status* PS_TensorToDLPack(const PS_Tensor* tensor, struct DLManagedTensor** managed);

PS_DType PS_TensorDType(const PS_Tensor* tensor);
int PS_TensorRank(const PS_Tensor* tensor);
/* The size of dimension i, 0 <= i < rank; -1 for another i. */
int64_t PS_TensorDim(const PS_Tensor* tensor, int i);
int64_t PS_TensorElements(const PS_Tensor* tensor);
/* The elements, row by row, and how many bytes they are; NULL and 0 for strings. Write them only
   before the tensor is fed for the first time, and never those of a fetched one. */
void* PS_TensorData(PS_Tensor* tensor);
size_t PS_TensorBytes(const PS_Tensor* tensor);
/* String i of a tensor of strings and its size in bytes; NULL for another i or type. A zero follows
   its last byte. */
const char* PS_TensorString(const PS_Tensor* tensor, int64_t i, size_t* size);
void PS_DeleteTensor(PS_Tensor* tensor);

/* --- Session: a graph, and the means to run parts of it -------------------------------------- */

typedef struct PS_Session PS_Session;
typedef struct PS_Cancellation PS_Cancellation;

/* Makes a session: in this process for the target "", on the cluster of the task at
   "grpc://host:port" otherwise. Calls nobody yet. `timeout_ms` is the deadline of calls that bring
   none of their own; 0: a minute for calls that only talk to tasks, a day for steps of several
   tasks, none for steps of this process. */
PS_Status* PS_NewSession(const char* target, int64_t timeout_ms, PS_Session** session);
/* Adds the nodes of a GraphDef, in protobuf's binary form, to the session's graph. On an error none
   is added. */
PS_Status* PS_ExtendSession(PS_Session* session, const void* graph_def, size_t size);

/* One step. The arrays are as long as the number behind them; NULL if that is 0. */
typedef struct PS_Step {
  const char* const* feed_names; /* "x:0" or "x" */
  PS_Tensor* const* feeds;       /* not taken; may be fed again */
  int num_feeds;
  const char* const* fetch_names;
  int num_fetches;
  const char* const* targets; /* nodes to run without fetching */
  int num_targets;
  int64_t timeout_ms;            /* 0: the session's */
  PS_Cancellation* cancellation; /* NULL: none */
} PS_Step;

/* Runs a step and waits for it. Writes `num_fetches` tensors to `fetched`, each the caller's to
   delete. `step_size` is sizeof(PS_Step): later versions may add fields. An error of a step leaves
   the session usable. DEADLINE_EXCEEDED: the timeout; CANCELLED: PS_Cancel. UNAVAILABLE and
   ABORTED: a task was lost; make a new session and go on from the last checkpoint. */
PS_Status* PS_Run(PS_Session* session, const PS_Step* step, size_t step_size, PS_Tensor** fetched);
/* Ends running steps, waits for their end and frees what the session holds, here and on tasks. */
PS_Status* PS_CloseSession(PS_Session* session);
/* Closes it, if that has not been done. No thread may be in a call with it. */
void PS_DeleteSession(PS_Session* session);

/* Ends the steps that were started with it, from another thread, as often as wanted: those that
   run and those to come. Delete it when those steps have returned. */
PS_Status* PS_NewCancellation(PS_Cancellation** cancellation);
void PS_Cancel(PS_Cancellation* cancellation);
void PS_DeleteCancellation(PS_Cancellation* cancellation);

/* --- Server: one task of a cluster ----------------------------------------------------------- */

typedef struct PS_Server PS_Server;

/* Makes a task and binds its port, from JSON as in TF_CONFIG:
   {"cluster": {"ps": ["h:2220"], "worker": ["h:2221"]}, "task": {"type": "ps", "index": 0}}.
   Port 0 is a free one. INVALID_ARGUMENT: a mistake in it, or the port is taken. Loads the op
   libraries that PENSTOCK_LOAD in the environment names, separated by commas. A library that is
   refused fails the call with an error of PS_LoadLibrary, which begins with PENSTOCK_LOAD. */
PS_Status* PS_NewServer(const char* config, PS_Server** server);
/* Serves from now on. */
PS_Status* PS_StartServer(PS_Server* server);
/* "grpc://host:port", for PS_NewSession. */
const char* PS_ServerTarget(const PS_Server* server);
/* Returns when the task has been asked to end: by PS_StopServer or by `penstock shutdown`. */
void PS_JoinServer(PS_Server* server);
/* Ends what runs and closes the port. */
void PS_StopServer(PS_Server* server);
/* Stops it, if that has not been done. No thread may be in a call with it. */
void PS_DeleteServer(PS_Server* server);

/* --- Ops -------------------------------------------------------------------------------------- */

/* Loads an op library for good (docs/custom-ops.md). Sessions and servers that are made later know
   its ops. NOT_FOUND: there is no such file; INVALID_ARGUMENT: it is no op library, or contradicts
   itself; FAILED_PRECONDITION: it was built for another version; ALREADY_EXISTS: it has an op or a
   kernel that there is. */
PS_Status* PS_LoadLibrary(const char* path);

#ifdef __cplusplus
}
#endif
