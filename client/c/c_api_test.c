/* SPDX-License-Identifier: Apache-2.0

   c_api.h from C11: trains y = x w in this process, and on a cluster of a ps and a worker that the
   program starts itself; errors, deadlines, cancellation.

     c_api_test LOCAL_GRAPH CLUSTER_GRAPH */
#include "client/c/c_api.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int failures = 0;

#define EXPECT(condition)                                                 \
  do {                                                                    \
    if (!(condition)) {                                                   \
      ++failures;                                                         \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                     \
  } while (0)

/* Ends the program on an error. */
static void must(PS_Status* status) {
  if (status == NULL) return;
  fprintf(stderr, "error %d: %s\n", (int)PS_StatusCode(status), PS_StatusMessage(status));
  exit(1);
}

/* Expects an error of this code whose message contains `text`. */
static void must_fail(PS_Status* status, PS_Code code, const char* text) {
  EXPECT(status != NULL);
  if (status == NULL) return;
  if (PS_StatusCode(status) != code || strstr(PS_StatusMessage(status), text) == NULL) {
    ++failures;
    fprintf(stderr, "expected error %d with '%s', got %d: %s\n", (int)code, text,
            (int)PS_StatusCode(status), PS_StatusMessage(status));
  }
  PS_DeleteStatus(status);
}

static PS_Tensor* matrix(int64_t rows, int64_t columns, const float* values) {
  const int64_t dims[] = {rows, columns};
  PS_Tensor* tensor = NULL;
  must(PS_NewTensor(PS_FLOAT, dims, 2, &tensor));
  EXPECT(PS_TensorBytes(tensor) == (size_t)(rows * columns) * sizeof(float));
  memcpy(PS_TensorData(tensor), values, PS_TensorBytes(tensor));
  return tensor;
}

static void extend(PS_Session* session, const char* path) {
  static char bytes[1 << 16];
  FILE* const file = fopen(path, "rb");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  const size_t size = fread(bytes, 1, sizeof(bytes), file);
  fclose(file);
  must(PS_ExtendSession(session, bytes, size));
}

static PS_Status* run_target(PS_Session* session, const char* target, int64_t timeout_ms,
                             PS_Cancellation* cancellation) {
  const PS_Step step = {.targets = &target,
                        .num_targets = 1,
                        .timeout_ms = timeout_ms,
                        .cancellation = cancellation};
  return PS_Run(session, &step, sizeof(step), NULL);
}

static void train(PS_Session* session) {
  must(run_target(session, "init", 0, NULL));
  PS_Tensor* const feeds[] = {matrix(2, 2, (float[]){1, 0, 0, 1}), matrix(2, 1, (float[]){3, -1})};
  const char* const names[] = {"x", "y:0"};
  const char* const train = "train";
  const char* const fetch = "w/value";
  PS_Tensor* w = NULL;
  const PS_Step step = {
      .feed_names = names, .feeds = feeds, .num_feeds = 2, .targets = &train, .num_targets = 1};
  for (int i = 0; i < 30; ++i) must(PS_Run(session, &step, sizeof(step), NULL));
  const PS_Step read = {.fetch_names = &fetch, .num_fetches = 1};
  must(PS_Run(session, &read, sizeof(read), &w));
  EXPECT(PS_TensorDType(w) == PS_FLOAT);
  EXPECT(PS_TensorRank(w) == 2 && PS_TensorDim(w, 0) == 2 && PS_TensorDim(w, 1) == 1);
  EXPECT(PS_TensorDim(w, 2) == -1 && PS_TensorElements(w) == 2);
  const float* const values = PS_TensorData(w);
  EXPECT(fabsf(values[0] - 3) < 1e-3f && fabsf(values[1] + 1) < 1e-3f);
  printf("w = %.3f %.3f\n", values[0], values[1]);
  PS_DeleteTensor(w);
  PS_DeleteTensor(feeds[0]);
  PS_DeleteTensor(feeds[1]);
}

static void* cancel_soon(void* cancellation) {
  usleep(200 * 1000);
  PS_Cancel(cancellation);
  return NULL;
}

static void end_stuck_steps(PS_Session* session) {
  must_fail(run_target(session, "stuck", 200, NULL), PS_DEADLINE_EXCEEDED, "");
  PS_Cancellation* cancellation = NULL;
  must(PS_NewCancellation(&cancellation));
  pthread_t thread;
  EXPECT(pthread_create(&thread, NULL, cancel_soon, cancellation) == 0);
  must_fail(run_target(session, "stuck", 20 * 1000, cancellation), PS_CANCELLED, "cancelled");
  pthread_join(thread, NULL);
  PS_DeleteCancellation(cancellation);
}

static void make_mistakes(PS_Session* session) {
  must_fail(run_target(session, "nothing", 0, NULL), PS_NOT_FOUND, "nothing");
  must_fail(PS_ExtendSession(session, "no graph", 8), PS_INVALID_ARGUMENT, "GraphDef");
  must_fail(PS_Run(session, NULL, sizeof(PS_Step), NULL), PS_INVALID_ARGUMENT, "step is NULL");
  const PS_Step step = {.num_fetches = 1};
  must_fail(PS_Run(session, &step, 3, NULL), PS_INVALID_ARGUMENT, "step_size");
  must_fail(PS_Run(session, &step, sizeof(step), NULL), PS_INVALID_ARGUMENT, "is NULL");
  PS_Session* other = NULL;
  must_fail(PS_NewSession("host:1", 0, &other), PS_INVALID_ARGUMENT, "grpc://");
  must_fail(PS_LoadLibrary("/nowhere/libnone.so"), PS_NOT_FOUND, "/nowhere/libnone.so");
  PS_Server* server = NULL;
  must_fail(PS_NewServer("{", &server), PS_INVALID_ARGUMENT, "TF_CONFIG");
  PS_Tensor* tensor = NULL;
  must_fail(PS_NewTensor(PS_STRING, NULL, 0, &tensor), PS_INVALID_ARGUMENT, "string");
  must_fail(PS_NewTensor(PS_FLOAT, (int64_t[]){-1}, 1, &tensor), PS_INVALID_ARGUMENT, "-1");
  const char* const texts[] = {"a", NULL};
  const size_t sizes[] = {1, 1};
  const int64_t two[] = {2};
  must_fail(PS_NewStringTensor(two, 1, NULL, sizes, &tensor), PS_INVALID_ARGUMENT,
            "strings is NULL");
  must_fail(PS_NewStringTensor(two, 1, texts, NULL, &tensor), PS_INVALID_ARGUMENT, "sizes is NULL");
  must_fail(PS_NewStringTensor(two, 1, texts, sizes, &tensor), PS_INVALID_ARGUMENT,
            "strings[1] is NULL");
  must_fail(PS_NewTensor(PS_FLOAT, (int64_t[]){1LL << 50}, 1, &tensor), PS_RESOURCE_EXHAUSTED, "");
  EXPECT(tensor == NULL && server == NULL && other == NULL);
}

static void check_strings(void) {
  PS_Tensor* tensor = NULL;
  must(PS_NewStringTensor((int64_t[]){2}, 1, (const char* const[]){"ab\0c", ""},
                          (size_t[]){4, 0}, &tensor));
  size_t size = 9;
  EXPECT(memcmp(PS_TensorString(tensor, 0, &size), "ab\0c", 5) == 0 && size == 4);
  EXPECT(strcmp(PS_TensorString(tensor, 1, &size), "") == 0 && size == 0);
  EXPECT(PS_TensorString(tensor, 2, &size) == NULL && PS_TensorData(tensor) == NULL);
  PS_Tensor* none = NULL;
  must(PS_NewStringTensor((int64_t[]){0}, 1, NULL, NULL, &none));
  EXPECT(PS_TensorElements(none) == 0);
  PS_DeleteTensor(none);
  struct DLManagedTensor* managed = NULL;
  must_fail(PS_TensorToDLPack(tensor, &managed), PS_INVALID_ARGUMENT, "string");
  PS_DeleteTensor(tensor);
}

static int free_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT(bind(s, (struct sockaddr*)&address, size) == 0);
  EXPECT(getsockname(s, (struct sockaddr*)&address, &size) == 0);
  close(s);
  return ntohs(address.sin_port);
}

static void* join(void* server) {
  PS_JoinServer(server);
  return NULL;
}

static void train_on_cluster(const char* graph) {
  const int ports[] = {free_port(), free_port()};
  const char* const jobs[] = {"ps", "worker"};
  PS_Server* servers[2] = {NULL, NULL};
  for (int i = 0; i < 2; ++i) {
    char config[300];
    snprintf(config, sizeof(config),
             "{\"cluster\": {\"ps\": [\"127.0.0.1:%d\"], \"worker\": [\"127.0.0.1:%d\"]}, "
             "\"task\": {\"type\": \"%s\", \"index\": 0}}",
             ports[0], ports[1], jobs[i]);
    must(PS_NewServer(config, &servers[i]));
    must(PS_StartServer(servers[i]));
  }
  pthread_t joining;
  EXPECT(pthread_create(&joining, NULL, join, servers[0]) == 0);
  PS_Session* session = NULL;
  must(PS_NewSession(PS_ServerTarget(servers[1]), 20 * 1000, &session));
  extend(session, graph);
  train(session);
  end_stuck_steps(session);
  train(session); /* the session is as good as before */
  must(PS_CloseSession(session));
  must_fail(run_target(session, "init", 0, NULL), PS_FAILED_PRECONDITION, "closed");
  PS_DeleteSession(session);
  PS_StopServer(servers[0]);
  pthread_join(joining, NULL);
  PS_DeleteServer(servers[0]);
  PS_DeleteServer(servers[1]);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "Usage: c_api_test LOCAL_GRAPH CLUSTER_GRAPH\n");
    return 2;
  }
  EXPECT(PS_AbiVersion() == PS_ABI_VERSION);
  printf("Penstock %s\n", PS_Version());
  check_strings();
  PS_Session* session = NULL;
  must(PS_NewSession("", 0, &session));
  extend(session, argv[1]);
  train(session);
  end_stuck_steps(session);
  make_mistakes(session);
  train(session);
  PS_DeleteSession(session);
  train_on_cluster(argv[2]);
  PS_DeleteStatus(NULL);
  PS_DeleteTensor(NULL);
  PS_DeleteSession(NULL);
  PS_DeleteServer(NULL);
  printf("%s\n", failures == 0 ? "passed" : "FAILED");
  return failures == 0 ? 0 : 1;
}
