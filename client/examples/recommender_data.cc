// SPDX-License-Identifier: Apache-2.0
#include "client/examples/recommender_data.h"

#include <algorithm>
#include <map>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace penstock::examples {
namespace {

constexpr double kLiked = 4;
constexpr size_t kTestShare = 10;  // one in this many ratings is for testing

// Numbers ids in the order of their first use.
class Numbering {
 public:
  int64_t operator[](const std::string& name) {
    return numbers_.try_emplace(name, static_cast<int64_t>(numbers_.size())).first->second;
  }
  int64_t size() const { return static_cast<int64_t>(numbers_.size()); }

 private:
  std::map<std::string, int64_t> numbers_;
};

// Returns the first `count` fields of each line except the first line, which must begin with
// `head`.
StatusOr<std::vector<std::vector<std::string>>> ReadCsv(Env& env, const std::string& path,
                                                        const std::string& head, size_t count) {
  ASSIGN_OR_RETURN(const std::string text, env.ReadFile(path));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (lines.empty() || lines[0].rfind(head, 0) != 0) {
    return InvalidArgument(path, ": expected a first line '", head, "', as tools/movielens writes");
  }
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 1; i < lines.size(); ++i) {
    std::vector<std::string> fields = absl::StrSplit(lines[i], ',');
    if (fields.size() < count) {
      return InvalidArgument(path, " line ", i + 1, ": expected ", count, " fields");
    }
    fields.resize(count);
    rows.push_back(std::move(fields));
  }
  return rows;
}

struct TimedRating {
  Rating rating;
  int64_t time;
};

// Ratings by user, the earliest first.
using Histories = std::vector<std::vector<TimedRating>>;

StatusOr<Histories> ReadHistories(Env& env, const std::string& path, Numbering* films) {
  ASSIGN_OR_RETURN(const auto rows, ReadCsv(env, path, "user,movie,rating,time", 4));
  Numbering users;
  Histories histories;
  for (size_t i = 0; i < rows.size(); ++i) {
    double stars;
    TimedRating next;
    if (!absl::SimpleAtod(rows[i][2], &stars) || !absl::SimpleAtoi(rows[i][3], &next.time)) {
      return InvalidArgument(path, " line ", i + 2, ": rating and time must be numbers");
    }
    next.rating = {users[rows[i][0]], (*films)[rows[i][1]], stars >= kLiked};
    histories.resize(users.size());
    histories[next.rating.user].push_back(next);
  }
  for (auto& history : histories) {
    std::stable_sort(history.begin(), history.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
  }
  return histories;
}

}  // namespace

StatusOr<Ratings> ReadRatings(Env& env, const std::string& directory) {
  Ratings ratings;
  Numbering films, genres;
  ASSIGN_OR_RETURN(const Histories histories,
                   ReadHistories(env, directory + "/ratings.csv", &films));
  ratings.users = static_cast<int64_t>(histories.size());
  for (const auto& history : histories) {
    const size_t tests = history.size() / kTestShare;
    for (size_t i = 0; i < history.size(); ++i) {
      (i + tests < history.size() ? ratings.train : ratings.test).push_back(history[i].rating);
    }
  }
  if (ratings.train.empty() || ratings.test.empty()) {
    return InvalidArgument(directory, "/ratings.csv: there are too few ratings");
  }
  ratings.genres.resize(films.size());
  ASSIGN_OR_RETURN(const auto rows,
                   ReadCsv(env, directory + "/movies.csv", "movie,year,genres", 3));
  for (const auto& row : rows) {
    const int64_t film = films[row[0]];
    if (film >= ratings.films()) continue;  // a film without ratings
    for (const auto genre : absl::StrSplit(row[2], '|', absl::SkipEmpty())) {
      ratings.genres[film].push_back(genres[std::string(genre)]);
    }
  }
  ratings.num_genres = std::max<int64_t>(1, genres.size());
  return ratings;
}

RatingBatch MakeBatch(const Ratings& ratings, const std::vector<Rating>& from, size_t begin,
                      size_t end) {
  std::vector<int64_t> users, films, genres, splits = {0};
  std::vector<float> liked;
  for (size_t i = begin; i < end; ++i) {
    users.push_back(from[i].user);
    films.push_back(from[i].film);
    liked.push_back(from[i].liked ? 1 : 0);
    const auto& own = ratings.genres[from[i].film];
    genres.insert(genres.end(), own.begin(), own.end());
    splits.push_back(static_cast<int64_t>(genres.size()));
  }
  return {.users = Tensor::Vector<int64_t>(users),
          .films = Tensor::Vector<int64_t>(films),
          .genres = Tensor::Vector<int64_t>(genres),
          .genre_splits = Tensor::Vector<int64_t>(splits),
          .liked = Tensor::Vector<float>(liked)};
}

RatingBatch DrawBatch(const Ratings& ratings, int64_t batch_size, int64_t step, int worker) {
  std::seed_seq seed = {step, int64_t{worker}};
  std::mt19937_64 random(seed);
  std::vector<Rating> drawn;
  for (int64_t i = 0; i < batch_size; ++i) {
    drawn.push_back(ratings.train[random() % ratings.train.size()]);
  }
  return MakeBatch(ratings, drawn, 0, drawn.size());
}

}  // namespace penstock::examples
