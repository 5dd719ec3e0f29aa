"""Frames that go up, through a kernel and down on three streams: the requests `streams`, `frames`, `graphs` and `plain` of the peers in
Python (bench/native/driver_peer.cpp describes them). A peer gives its lanes, whose methods submit to the lane's stream."""
import time

LANES = 3


class Frames:
    """`make_lane(bytes)` makes a lane. It has `up`, `down`, `increment`, `spin(steps)`, `graph` (launches the three as a graph),
    `synchronize`, `plain` (an ordinary array through all three, returns a new one), and the arrays `source` and `target` of the host."""

    def __init__(self, make_lane, synchronize):
        self.make_lane = make_lane
        self.synchronize = synchronize
        self.sizes = {}

    def lanes(self, kib):
        if kib not in self.sizes:
            lanes = [self.make_lane(int(kib) * 1024) for _ in range(LANES)]
            steps = 10_000
            # The first copies and kernels take longer.
            copy = min(self.timed(lanes, 60, lambda lane: lane.up()) for _ in range(3))
            for _ in range(4):
                # Kernels of several streams run side by side, so the time of a kernel is that of one after another, on one stream.
                alone = self.timed(lanes[:1], 20, lambda lane: lane.spin(steps))
                steps = max(1, round(steps * copy / alone))
            self.sizes[kib] = lanes, steps
        return self.sizes[kib]

    def timed(self, lanes, count, work):
        self.synchronize()
        start = time.perf_counter()
        for n in range(count):
            work(lanes[n % len(lanes)])
        self.synchronize()
        return (time.perf_counter() - start) / count

    def streams(self, kib, count):
        lanes, steps = self.lanes(kib)

        def both(lane):
            lane.up()
            lane.down()

        def all_three(lane):
            lane.up()
            lane.spin(steps)
            lane.down()

        parts = [self.timed(lanes, int(count), work) for work in (lambda lane: lane.up(), lambda lane: lane.down(), all_three, both)]
        return [*parts, self.timed(lanes[:1], 20, lambda lane: lane.spin(steps))]

    def loop(self, kib, count, submit):
        lanes, _ = self.lanes(kib)
        self.synchronize()
        start = time.perf_counter()
        for n in range(int(count)):
            lane = lanes[n % LANES]
            lane.synchronize()
            if n >= LANES and lane.target[0] != n - LANES + 1:
                raise ValueError(f"frame {n - LANES} is {lane.target[0]}")
            lane.source[0] = n
            submit(lane)
        self.synchronize()
        return [(time.perf_counter() - start) / int(count)]

    def frames(self, kib, count):
        def submit(lane):
            lane.up()
            lane.increment()
            lane.down()

        return self.loop(kib, count, submit)

    def graphs(self, kib, count):
        return self.loop(kib, count, lambda lane: lane.graph())

    def plain(self, kib, count):
        lanes, _ = self.lanes(kib)
        self.synchronize()
        start = time.perf_counter()
        for n in range(int(count)):
            result = lanes[n % LANES].plain()
            if result[0] != 2:
                raise ValueError(f"frame {n} is {result[0]}")
        self.synchronize()
        return [(time.perf_counter() - start) / int(count)]

    def requests(self):
        return {"streams": self.streams, "frames": self.frames, "graphs": self.graphs, "plain": self.plain}
