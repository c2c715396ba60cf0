//go:build nri06

package main

import (
	"context"
	"errors"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
)

func runPod(ctx context.Context, r *adaptation.Adaptation, p *api.PodSandbox) error {
	return r.RunPodSandbox(ctx, &adaptation.StateChangeEvent{Pod: p})
}

func endPod(ctx context.Context, r *adaptation.Adaptation, p *api.PodSandbox, c *api.Container) error {
	_, err := r.StopContainer(ctx, &adaptation.StopContainerRequest{Pod: p, Container: c})
	change := &adaptation.StateChangeEvent{Pod: p, Container: c}
	end := &adaptation.StateChangeEvent{Pod: p}
	return errors.Join(err, r.RemoveContainer(ctx, change), r.StopPodSandbox(ctx, end), r.RemovePodSandbox(ctx, end))
}
