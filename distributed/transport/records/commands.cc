// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/records/commands.h"

namespace penstock {

Status WriteCommands(RingWriter& ring, std::deque<Command>* waiting) {
  if (waiting->empty()) return OkStatus();
  ASSIGN_OR_RETURN(size_t room, ring.Room());
  for (; !waiting->empty() && room >= sizeof(Command); room -= sizeof(Command)) {
    ring.Append(&waiting->front(), sizeof(Command));
    waiting->pop_front();
  }
  ring.Publish();
  return OkStatus();
}

StatusOr<bool> ReadCommands(RingReader& ring, const std::string& consumer,
                            std::vector<int64_t>* subscribed,
                            absl::FunctionRef<bool(uint64_t)> done) {
  ASSIGN_OR_RETURN(size_t readable, ring.Readable());
  if (readable == 0) return false;
  for (; readable >= sizeof(Command); readable -= sizeof(Command)) {
    Command command;
    ring.Read(&command, sizeof(command));
    if (command.kind == Command::kSubscribe) {
      subscribed->push_back(static_cast<int64_t>(command.value));
    } else if (command.kind != Command::kDone || !done(command.value)) {
      return DataLoss("the consumer ", consumer, " sent a command of kind ", command.kind, " for ",
                      command.value);
    }
  }
  if (readable > 0) return DataLoss("the consumer ", consumer, " sent half a command");
  ring.Release();
  return true;
}

}  // namespace penstock
