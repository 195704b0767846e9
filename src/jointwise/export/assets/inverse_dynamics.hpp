// Torque of a planned motion by the calibrated model of @{robot}.
#pragma once

#include <array>
#include <cstddef>

namespace @{package}
{

/// Number of joints of the model.
extern const std::size_t kJoints;
/// Samples a second for which the model was made.
extern const double kRate;
/// Largest number of joints.
constexpr std::size_t kMostJoints = 16;

using Vector = std::array<double, kMostJoints>;

/// Inverse dynamics with bodies, rotors and friction; friction remembers the motion. No allocation after construction.
class InverseDynamics
{
public:
  InverseDynamics();
  InverseDynamics(const InverseDynamics &) = delete;
  InverseDynamics & operator=(const InverseDynamics &) = delete;
  ~InverseDynamics();

  /// Relax the gears at positions q (rad).
  void reset(const double * q);
  /// Torque (Nm) of the next sample, 1 / kRate s after the one before: q rad, qd rad/s, qdd rad/s^2.
  Vector inverse_dynamics(const double * q, const double * qd, const double * qdd);
  /// Motor currents (A) of torques, or the torques of a model that was calibrated on torques.
  Vector output(const Vector & torque) const;
  /// Name of a joint, from 0.
  static const char * joint_name(std::size_t joint);

private:
  struct Memory;
  Memory * memory_;
};

}  // namespace @{package}
