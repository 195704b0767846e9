// The few names of ROS 2 that the node uses, so that its source can be compiled without ROS 2. Not part of an export.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace std_msgs::msg { struct Float64MultiArray { std::vector<double> data; }; }
namespace trajectory_msgs::msg
{
struct JointTrajectoryPoint { std::vector<double> positions, velocities, accelerations; };
}

namespace rclcpp
{
struct Logger {};
template<class T> struct Publisher
{
  using SharedPtr = std::shared_ptr<Publisher<T>>;
  void publish(const T &) {}
};
template<class T> struct Subscription { using SharedPtr = std::shared_ptr<Subscription<T>>; };
class Node
{
public:
  explicit Node(const std::string &) {}
  Logger get_logger() const { return {}; }
  template<class T> typename Publisher<T>::SharedPtr create_publisher(const std::string &, int) { return {}; }
  template<class T> typename Subscription<T>::SharedPtr create_subscription(
    const std::string &, int, std::function<void(const T &)>) { return {}; }
};
inline void init(int, char **) {}
inline void spin(std::shared_ptr<Node>) {}
inline void shutdown() {}
}  // namespace rclcpp

#define RCLCPP_ERROR(logger, ...) ((void)(logger))
