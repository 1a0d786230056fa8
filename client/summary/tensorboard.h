// SPDX-License-Identifier: Apache-2.0
//
// TensorBoard: runs the program `tensorboard` during a training, if it is installed. Linux only.
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "core/base/env.h"

namespace penstock::client {

class TensorBoard {
 public:
  // Starts the program on the event files below `folder`, on port 6006 of the loopback interface,
  // or on another port if 6006 is taken. The program's output goes to tensorboard.log in that
  // folder. The program ends with this object, or with the thread that called Start. NotFound if
  // there is no `tensorboard` in the PATH.
  static StatusOr<std::unique_ptr<TensorBoard>> Start(const std::string& folder,
                                                      Env& env = Env::Real());
  // Ends the program (SIGTERM, after 5 s SIGKILL).
  ~TensorBoard();
  TensorBoard(const TensorBoard&) = delete;
  TensorBoard& operator=(const TensorBoard&) = delete;

  // Returns "http://localhost:6006/", which answers some seconds after the start.
  std::string url() const { return StrCat("http://localhost:", port_, "/"); }

 private:
  TensorBoard(pid_t pid, int port, Env& env) : pid_(pid), port_(port), env_(env) {}

  const pid_t pid_;
  const int port_;
  Env& env_;
};

}  // namespace penstock::client
