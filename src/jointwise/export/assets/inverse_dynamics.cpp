#include "@{package}/inverse_dynamics.hpp"

#include "robot_model.h"

namespace @{package}
{

const std::size_t kJoints = ROBOT_JOINTS;
const double kRate = 1.0 / robot_model.period;

struct InverseDynamics::Memory
{
  jw_state state;
  bool started = false;
};

InverseDynamics::InverseDynamics()
: memory_(new Memory())
{
}

InverseDynamics::~InverseDynamics()
{
  delete memory_;
}

void InverseDynamics::reset(const double * q)
{
  jw_init(&robot_model, q, nullptr, &memory_->state);
  memory_->started = true;
}

Vector InverseDynamics::inverse_dynamics(const double * q, const double * qd, const double * qdd)
{
  if (!memory_->started) {
    reset(q);
  }
  Vector torque{};
  jw_sample sample{};
  sample.q = q;
  sample.qd = qd;
  sample.qdd = qdd;
  jw_step(&robot_model, &memory_->state, &sample, torque.data());
  return torque;
}

Vector InverseDynamics::output(const Vector & torque) const
{
  Vector output{};
  jw_output(&robot_model, torque.data(), output.data());
  return output;
}

const char * InverseDynamics::joint_name(std::size_t joint)
{
  return robot_joint_names[joint];
}

}  // namespace @{package}
