// driver: the container runtime's side of NRI, by NRI's own library (the one that containerd links), for one or more
// plugins that are measured in turn within one run.
//
// driver [options] NAME=SOCKET=KIND[,KIND] ...    KIND: opted or plain
//
// It prints a JSON line for each plugin that has registered. Each line on its standard input is a load, "COUNT PARALLEL":
// so many timed creates of each plugin and kind, so many at once. It measures, and prints one JSON line with every latency
// in microseconds for each plugin and kind. It leaves when its input ends.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"
)

var (
	warm     = flag.Int("warm", 50, "creates of each plugin and kind before those of a load that are timed")
	block    = flag.Int("block", 25, "creates of one plugin before the next one's turn")
	running  = flag.Int("running", 200, "containers that run already")
	services = flag.Int("services", 20, "workloads")
	alive    = flag.Int("alive", 16, "new containers of each plugin that are kept")
	shares   = flag.Int("shares", 300, "CPU shares of each container")
	env      = flag.Int("env", 20, "environment variables of each container")
	mounts   = flag.Int("mounts", 10, "mounts of each container")
	memory   = flag.String("memory", "", "a cgroup's folder in the memory controller's hierarchy, below which each new pod has a cgroup with its limit before its sandbox, as a kubelet makes it; without it none has one")
	gap      = flag.Duration("gap", 5*time.Millisecond, "from RunPodSandbox to CreateContainer; a kubelet takes 100 ms and more")
)

type row struct {
	Plugin string    `json:"plugin"`
	Kind   string    `json:"kind"`
	Micros []float64 `json:"micros"`
	Pinned int       `json:"pinned"`
}

const memoryLimit = 64 << 20

func uidOf(i int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", i) }

func pod(i int, opted bool, parent string) *api.PodSandbox {
	uid := uidOf(i)
	p := &api.PodSandbox{
		Id: fmt.Sprintf("%064d", i), Name: fmt.Sprintf("svc%d-5d4f8c7b9-%06d", i%*services, i), Uid: uid, Namespace: "bench",
		Labels:      map[string]string{"app": fmt.Sprintf("svc%d", i%*services), "pod-template-hash": "5d4f8c7b9"},
		Annotations: map[string]string{"kubernetes.io/config.source": "api"},
		Linux: &api.LinuxPodSandbox{
			CgroupParent: parent + "/pod" + uid, CgroupsPath: parent + "/pod" + uid + "/" + fmt.Sprintf("%064d", i),
			PodResources: &api.LinuxResources{Cpu: &api.LinuxCPU{Shares: api.UInt64(uint64(*shares))}}},
	}
	if opted {
		p.Annotations["group.numakin.io"] = "shop"
	}
	return p
}

func container(i int, parent string) *api.Container {
	uid := uidOf(i)
	id := fmt.Sprintf("%063dc", i)
	c := &api.Container{
		Id: id, PodSandboxId: fmt.Sprintf("%064d", i), Name: "app", State: api.ContainerState_CONTAINER_CREATED,
		Args:        []string{"/bin/app", "--port=8080"},
		Labels:      map[string]string{"io.kubernetes.container.name": "app"},
		Annotations: map[string]string{"io.kubernetes.cri.container-type": "container"},
		Linux: &api.LinuxContainer{CgroupsPath: parent + "/pod" + uid + "/" + id,
			Resources: &api.LinuxResources{
				Cpu:    &api.LinuxCPU{Shares: api.UInt64(uint64(*shares)), Quota: api.Int64(int64(200000)), Period: api.UInt64(uint64(100000))},
				Memory: &api.LinuxMemory{Limit: api.Int64(int64(memoryLimit))}}},
	}
	for k := 0; k < *env; k++ {
		c.Env = append(c.Env, fmt.Sprintf("SERVICE_%02d_PORT=tcp://10.0.0.%d:8080", k, k))
	}
	for k := 0; k < *mounts; k++ {
		c.Mounts = append(c.Mounts, &api.Mount{Destination: fmt.Sprintf("/mnt/%d", k), Type: "bind",
			Source: fmt.Sprintf("/var/lib/kubelet/pods/%s/volumes/%d", uid, k), Options: []string{"rbind", "rprivate", "ro"}})
	}
	return c
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}

// plugin is one that is measured, with a runtime of its own. parent: its pods' cgroup. memory: the folder of that in the
// memory controller's hierarchy; empty: they have none there. Creates before the one numbered timed warm up.
type plugin struct {
	name   string
	kinds  []string
	parent string
	memory string
	nri    *adaptation.Adaptation
	next   atomic.Int64
	timed  int
	lock   sync.Mutex
	rows   map[string]*row
	kept   []int
}

func (p *plugin) makeParent() {
	if *memory == "" {
		p.parent = "/kubepods/burstable"
		return
	}
	p.parent, p.memory = "/"+filepath.Base(*memory)+"/"+p.name, filepath.Join(*memory, p.name)
	check(os.Mkdir(p.memory, 0o755))
	if control := filepath.Join(p.memory, "cgroup.subtree_control"); exists(control) { // cgroup v2
		check(os.WriteFile(control, []byte("+memory"), 0o644))
	}
}

func (p *plugin) makeCgroup(i int) {
	if p.memory == "" {
		return
	}
	folder := filepath.Join(p.memory, "pod"+uidOf(i))
	check(os.Mkdir(folder, 0o755))
	limit := filepath.Join(folder, "memory.max")
	if !exists(limit) { // cgroup v1
		limit = filepath.Join(folder, "memory.limit_in_bytes")
	}
	check(os.WriteFile(limit, []byte(strconv.Itoa(memoryLimit)), 0o644))
}

func (p *plugin) removeCgroup(i int) {
	if p.memory != "" {
		check(os.Remove(filepath.Join(p.memory, "pod"+uidOf(i))))
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func listen(argument, empty string, registered chan string) *plugin {
	parts := strings.Split(argument, "=")
	if len(parts) != 3 {
		check(fmt.Errorf("%q is not NAME=SOCKET=KINDS", argument))
	}
	p := &plugin{name: parts[0], kinds: strings.Split(parts[2], ",")}
	p.makeParent()
	opted := strings.Contains(parts[2], "opted")
	var started atomic.Bool
	sync := func(ctx context.Context, synchronize adaptation.SyncCB) error {
		pods, containers := []*api.PodSandbox{}, []*api.Container{}
		for i := 0; i < *running; i++ {
			c := container(900000+i, p.parent)
			c.State = api.ContainerState_CONTAINER_RUNNING
			pods, containers = append(pods, pod(900000+i, opted, p.parent)), append(containers, c)
		}
		_, err := synchronize(ctx, pods, containers)
		if err == nil && started.Load() {
			registered <- p.name
		}
		return err
	}
	update := func(context.Context, []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) { return nil, nil }
	var err error
	p.nri, err = adaptation.New("driver", "0.1", sync, update, adaptation.WithSocketPath(parts[1]),
		adaptation.WithPluginPath(empty), adaptation.WithPluginConfigPath(empty))
	check(err)
	check(p.nri.Start())
	started.Store(true)
	return p
}

func (p *plugin) cycle(ctx context.Context) {
	i := int(p.next.Add(1)) - 1
	kind := p.kinds[i%len(p.kinds)]
	sandbox, c := pod(i, kind == "opted", p.parent), container(i, p.parent)
	p.makeCgroup(i)
	check(runPod(ctx, p.nri, sandbox))
	time.Sleep(*gap)
	began := time.Now()
	answer, err := p.nri.CreateContainer(ctx, &adaptation.CreateContainerRequest{Pod: sandbox, Container: c})
	took := time.Since(began)
	check(err)
	gone := -1
	p.lock.Lock()
	if i >= p.timed {
		r := p.rows[kind]
		r.Micros = append(r.Micros, float64(took.Nanoseconds())/1e3)
		if answer.GetAdjust().GetLinux().GetResources().GetCpu().GetCpus() != "" {
			r.Pinned++
		}
	}
	if p.kept = append(p.kept, i); len(p.kept) > *alive {
		gone, p.kept = p.kept[0], p.kept[1:]
	}
	p.lock.Unlock()
	if gone >= 0 {
		check(endPod(ctx, p.nri, pod(gone, p.kinds[gone%len(p.kinds)] == "opted", p.parent), container(gone, p.parent)))
		p.removeCgroup(gone)
	}
}

func (p *plugin) begin() {
	p.timed = int(p.next.Load()) + *warm*len(p.kinds)
	p.rows = map[string]*row{}
	for _, kind := range p.kinds {
		p.rows[kind] = &row{Plugin: p.name, Kind: kind}
	}
}

func (p *plugin) creates(ctx context.Context, number, parallel int) {
	var left atomic.Int64
	left.Store(int64(number))
	var all sync.WaitGroup
	for w := 0; w < parallel; w++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for left.Add(-1) >= 0 {
				p.cycle(ctx)
			}
		}()
	}
	all.Wait()
}

func main() {
	flag.Parse()
	logrus.SetLevel(logrus.ErrorLevel)
	// Five times what a runtime waits: on a loaded machine a slow answer is measured, and not a plugin lost.
	adaptation.SetPluginRequestTimeout(10 * time.Second)
	empty, err := os.MkdirTemp("", "numakin-driver")
	check(err)
	defer os.RemoveAll(empty)
	registered := make(chan string, 16)
	plugins := []*plugin{}
	for _, argument := range flag.Args() {
		plugins = append(plugins, listen(argument, empty, registered))
	}
	out, in := json.NewEncoder(os.Stdout), bufio.NewScanner(os.Stdin)
	check(out.Encode(map[string]string{"listening": strings.Join(flag.Args(), " ")}))
	for range plugins {
		check(out.Encode(map[string]string{"registered": <-registered}))
	}
	for in.Scan() {
		var count, parallel int
		_, err := fmt.Sscan(in.Text(), &count, &parallel)
		check(err)
		measure(plugins, count, parallel)
		for _, p := range plugins {
			for _, kind := range p.kinds {
				check(out.Encode(p.rows[kind]))
			}
		}
	}
}

func measure(plugins []*plugin, count, parallel int) {
	for _, p := range plugins {
		p.begin()
	}
	for done := 0; done < *warm+count; done += *block {
		for _, p := range plugins {
			p.creates(context.Background(), upTo(*block, *warm+count-done)*len(p.kinds), parallel)
		}
	}
}

func upTo(most, number int) int {
	if number < most {
		return number
	}
	return most
}
