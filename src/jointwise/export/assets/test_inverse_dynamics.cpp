// Reads q, qd, qdd (doubles, one sample after the other) and writes the torques.
#include <cstdio>
#include <vector>

#include "@{package}/inverse_dynamics.hpp"

int main()
{
  const auto n = @{package}::kJoints;
  std::vector<double> in(3 * n);
  @{package}::InverseDynamics model;
  while (std::fread(in.data(), sizeof(double), 3 * n, stdin) == 3 * n) {
    const auto torque = model.inverse_dynamics(in.data(), in.data() + n, in.data() + 2 * n);
    if (std::fwrite(torque.data(), sizeof(double), n, stdout) != n) {
      return 1;
    }
  }
  return @{package}::kRate > 0.0 && @{package}::InverseDynamics::joint_name(0) != nullptr ? 0 : 1;
}
