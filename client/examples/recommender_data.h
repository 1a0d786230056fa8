// SPDX-License-Identifier: Apache-2.0
//
// Reads film ratings in the format of tools/movielens, and makes batches of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock::examples {

// Users and films are numbered from 0 in the order of their first rating, and genres in the order
// of their first rated film in movies.csv.
struct Rating {
  int64_t user = 0, film = 0;
  bool liked = false;  // true for 4 or more stars
};

struct Ratings {
  std::vector<Rating> train, test;           // the last tenth of each user's ratings is for testing
  std::vector<std::vector<int64_t>> genres;  // the genres of each film
  int64_t users = 0, num_genres = 0;
  int64_t films() const { return static_cast<int64_t>(genres.size()); }
};
// Reads DIRECTORY/ratings.csv and DIRECTORY/movies.csv. InvalidArgument names the file and the
// malformed line.
StatusOr<Ratings> ReadRatings(Env& env, const std::string& directory);

// A batch to feed to a model: int64[batch] users and films, the genres of the films as a ragged
// tensor, and float[batch] `liked`, which is 1 for liked.
struct RatingBatch {
  Tensor users, films, genres, genre_splits, liked;
  std::vector<Tensor> tensors() const { return {users, films, genres, genre_splits, liked}; }
};
// Returns the ratings [begin, end) of `from`. REQUIRES 0 <= begin < end <= from.size().
RatingBatch MakeBatch(const Ratings& ratings, const std::vector<Rating>& from, size_t begin,
                      size_t end);
// Returns batch `step` of worker `worker`, drawn from the training ratings; it is the same in each
// run.
RatingBatch DrawBatch(const Ratings& ratings, int64_t batch_size, int64_t step, int worker);

}  // namespace penstock::examples
