// SPDX-License-Identifier: Apache-2.0
#include "client/examples/recommender_data.h"

#include <fstream>

#include "core/base/check.h"
#include "core/base/env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::examples {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RecommenderDataTest : public testing::Test {
 protected:
  RecommenderDataTest() { CHECK_OK(Env::Real().CreateDirectories(directory_)); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ + "/" + name) << text;
  }
  // Writes twenty ratings of one user, of which the first is the latest; and one of another user.
  void WriteAll() {
    std::string ratings = "user,movie,rating,time\n";
    for (int i = 0; i < 20; ++i) {
      ratings += StrCat("7,", 100 + i % 3, ",", i % 2 == 0 ? "4.0" : "3.5", ",", 1000 - i, "\n");
    }
    Write("ratings.csv", ratings + "9,102,5,1\n");
    Write("movies.csv",
          "movie,year,genres,title\n100,1990,Drama|War,\"A, B\"\n101,0,,C\n102,1,War,D\n"
          "103,1,Western,nobody has rated it\n");
  }
  const std::string directory_ = StrCat(testing::TempDir(), "/ratings_", Env::Real().RandomU64());
};

TEST_F(RecommenderDataTest, TheLatestTenthOfEachUserIsForTesting) {
  WriteAll();
  const auto ratings = ReadRatings(Env::Real(), directory_);
  ASSERT_TRUE(ratings.ok()) << ratings.status();
  EXPECT_EQ(ratings->users, 2);
  EXPECT_EQ(ratings->films(), 3);
  EXPECT_EQ(ratings->train.size(), 19u);
  ASSERT_EQ(ratings->test.size(), 2u);
  EXPECT_EQ(ratings->test[1].film, 0);
  EXPECT_TRUE(ratings->test[1].liked);
  EXPECT_EQ(ratings->test[0].film, 1);
  EXPECT_FALSE(ratings->test[0].liked);
  EXPECT_THAT(ratings->genres[0], ElementsAre(0, 1));
  EXPECT_TRUE(ratings->genres[1].empty());
  EXPECT_THAT(ratings->genres[2], ElementsAre(1));
  EXPECT_EQ(ratings->num_genres, 2);
}

TEST_F(RecommenderDataTest, GenresAreRagged) {
  WriteAll();
  const auto ratings = ReadRatings(Env::Real(), directory_);
  ASSERT_TRUE(ratings.ok()) << ratings.status();
  const std::vector<Rating> some = {{0, 0, true}, {1, 1, false}, {0, 2, true}};
  const RatingBatch batch = MakeBatch(*ratings, some, 0, 3);
  EXPECT_EQ(batch.users.ToString(), "int64[3] 0 1 0");
  EXPECT_EQ(batch.genres.ToString(), "int64[3] 0 1 1");
  EXPECT_EQ(batch.genre_splits.ToString(), "int64[4] 0 2 2 3");
  EXPECT_EQ(batch.liked.ToString(), "float[3] 1 0 1");
}

TEST_F(RecommenderDataTest, BatchesDependOnStepAndWorkerOnly) {
  WriteAll();
  const auto ratings = ReadRatings(Env::Real(), directory_);
  ASSERT_TRUE(ratings.ok()) << ratings.status();
  const auto films = [&](int64_t step, int worker) {
    return DrawBatch(*ratings, 50, step, worker).films.ToString(50);
  };
  EXPECT_EQ(films(3, 0), films(3, 0));
  EXPECT_NE(films(3, 0), films(4, 0));
  EXPECT_NE(films(3, 0), films(3, 1));
}

TEST_F(RecommenderDataTest, FilesThatAreNotAsExpectedAreNamed) {
  const auto error = [&] {
    return std::string(ReadRatings(Env::Real(), directory_).status().message());
  };
  EXPECT_THAT(error(), HasSubstr("ratings.csv"));
  Write("ratings.csv", "something else\n");
  EXPECT_THAT(error(), HasSubstr("as tools/movielens writes"));
  Write("ratings.csv", "user,movie,rating,time\n1,2\n");
  EXPECT_THAT(error(), HasSubstr("ratings.csv line 2: expected 4 fields"));
  Write("ratings.csv", "user,movie,rating,time\n1,2,good,3\n");
  EXPECT_THAT(error(), HasSubstr("line 2: rating and time must be numbers"));
  Write("ratings.csv", "user,movie,rating,time\n1,2,5,3\n");
  EXPECT_THAT(error(), HasSubstr("too few ratings"));
}

}  // namespace
}  // namespace penstock::examples
