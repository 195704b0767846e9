// Publishes the torque of every planned sample: trajectory_msgs/JointTrajectoryPoint in, std_msgs/Float64MultiArray out.
#include <memory>

#include "rclcpp/rclcpp.hpp"
#include "std_msgs/msg/float64_multi_array.hpp"
#include "trajectory_msgs/msg/joint_trajectory_point.hpp"

#include "@{package}/inverse_dynamics.hpp"

using Point = trajectory_msgs::msg::JointTrajectoryPoint;
using Torques = std_msgs::msg::Float64MultiArray;

class FeedForwardNode : public rclcpp::Node
{
public:
  FeedForwardNode()
  : Node("feed_forward")
  {
    publisher_ = create_publisher<Torques>("~/torque", 10);
    subscription_ = create_subscription<Point>(
      "~/reference", 10, [this](const Point & point) {publish(point);});
  }

private:
  void publish(const Point & point)
  {
    const auto n = @{package}::kJoints;
    if (point.positions.size() != n || point.velocities.size() != n || point.accelerations.size() != n) {
      RCLCPP_ERROR(get_logger(), "a point must have positions, velocities and accelerations of all joints");
      return;
    }
    const auto torque = model_.inverse_dynamics(
      point.positions.data(), point.velocities.data(), point.accelerations.data());
    Torques message;
    message.data.assign(torque.begin(), torque.begin() + n);
    publisher_->publish(message);
  }

  @{package}::InverseDynamics model_;
  rclcpp::Publisher<Torques>::SharedPtr publisher_;
  rclcpp::Subscription<Point>::SharedPtr subscription_;
};

int main(int argc, char ** argv)
{
  rclcpp::init(argc, argv);
  rclcpp::spin(std::make_shared<FeedForwardNode>());
  rclcpp::shutdown();
  return 0;
}
