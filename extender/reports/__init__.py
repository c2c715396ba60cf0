"""The enforcers' side: the gRPC server that they stream their reports to."""
