//go:build !nri06

package main

import (
	"context"
	"errors"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
)

func runPod(ctx context.Context, r *adaptation.Adaptation, p *api.PodSandbox) error {
	return r.RunPodSandbox(ctx, &adaptation.RunPodSandboxRequest{Pod: p})
}

func endPod(ctx context.Context, r *adaptation.Adaptation, p *api.PodSandbox, c *api.Container) error {
	_, err := r.StopContainer(ctx, &adaptation.StopContainerRequest{Pod: p, Container: c})
	return errors.Join(err, r.RemoveContainer(ctx, &adaptation.RemoveContainerRequest{Pod: p, Container: c}),
		r.StopPodSandbox(ctx, &adaptation.StopPodSandboxRequest{Pod: p}),
		r.RemovePodSandbox(ctx, &adaptation.RemovePodSandboxRequest{Pod: p}))
}
