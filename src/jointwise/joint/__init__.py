"""What one joint is made of: every phenomenon of a strain-wave joint, each from its own experiment."""
