// least_go SOCKET: the least NRI plugin on NRI's own Go library; each container gets one and the same cpuset.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"github.com/sirupsen/logrus"
)

type least struct{}

func (least) RunPodSandbox(context.Context, *api.PodSandbox) error { return nil }

func (least) CreateContainer(context.Context, *api.PodSandbox, *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	adjustment := &api.ContainerAdjustment{}
	adjustment.SetLinuxCPUSetCPUs("0-1")
	adjustment.SetLinuxCPUSetMems("0")
	return adjustment, nil, nil
}

func (least) StopContainer(context.Context, *api.PodSandbox, *api.Container) ([]*api.ContainerUpdate, error) {
	return nil, nil
}

func main() {
	logrus.SetLevel(logrus.ErrorLevel)
	plugin, err := stub.New(&least{}, stub.WithPluginName("least"), stub.WithPluginIdx("10"), stub.WithSocketPath(os.Args[1]))
	if err == nil {
		err = plugin.Run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "least_go:", err)
		os.Exit(1)
	}
}
