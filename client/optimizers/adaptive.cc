// SPDX-License-Identifier: Apache-2.0
#include "client/optimizers/adaptive.h"

namespace penstock::client {

Ftrl::Ftrl(Hyperparameter learning_rate, const Options& options)
    : Optimizer("Ftrl", {.op = "FtrlV2",
                         .slots = {{"Ftrl", options.initial_accumulator}, {"Ftrl_1"}},
                         .after = {learning_rate, options.l1, options.l2, options.l2_shrinkage,
                                   options.learning_rate_power}}) {}

Adadelta::Adadelta(Hyperparameter learning_rate, const Options& options)
    : Optimizer("Adadelta", {.op = "Adadelta",
                             .slots = {{"Adadelta"}, {"Adadelta_1"}},
                             .before = {learning_rate, options.rho, options.epsilon}}) {}

CenteredRmsProp::CenteredRmsProp(Hyperparameter learning_rate, const Options& options)
    : Optimizer("RMSProp",
                {.op = "CenteredRMSProp",
                 .slots = {{"RMSProp_1"}, {"RMSProp", 1.0}, {"RMSProp_2"}},
                 .before = {learning_rate, options.decay, options.momentum, options.epsilon}}) {}

}  // namespace penstock::client
