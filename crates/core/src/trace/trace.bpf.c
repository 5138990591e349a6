// What the kernel counts for `manycore trace`: system calls of the programs that are followed, by
// thread and by call, with the time on the CPU and the time off it apart.
//
// Each followed task carries its state in task storage, so that a call costs no hash lookup. It counts
// into a record: a thread of a Node program has one of its own, other child processes share one by the
// name of their program, because there may be thousands of them (CGI). The record of a task that has
// ended stays, so programs that start when half of the records are in use share one, too: the other
// half is for threads of those that have their own.
//
// Own definitions of the kernel's structs with only the fields in use: the loader finds their offsets
// in the BTF of the running kernel. `scripts/build-bpf.mjs` makes trace.bpf.o of this file; the layout
// of `struct record` is repeated in record.rs. Not here: reading (sys/linux_ebpf.rs).

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define CALL_COUNT 512
#define RECORD_COUNT 1024
/* So many are in use when programs that start get none for each thread any more. */
#define TOLD_APART_COUNT (RECORD_COUNT / 2)
#define COMM_SIZE 16
/* As HINT_WORDS in linux_ebpf.rs. */
#define HINT_WORDS 64

/* What a record is of; `record.rs` has the same numbers. */
#define KIND_THREAD 1
#define KIND_CHILDREN 2
#define KIND_STARTING 3 /* children that run no program of their own yet */

struct sched_entity {
  __u64 sum_exec_runtime;
} __attribute__((preserve_access_index));

struct bpf_local_storage;

struct task_struct {
  int pid;
  int tgid;
  struct sched_entity se;
  struct bpf_local_storage *bpf_storage;
} __attribute__((preserve_access_index));

struct call {
  __u64 count;
  __u64 errors;
  __u64 on_cpu_ns;
  __u64 blocked_ns;
};

struct record {
  __u32 kind;
  __u32 tid; /* 0: of child processes */
  __u32 pid;
  __u32 is_ended;
  __u64 tasks; /* that counted into it */
  __u64 run_ns; /* of its tasks that have ended, or run another program now: since the start of each */
  char comm[COMM_SIZE];
  struct call calls[CALL_COUNT];
};

struct task_state {
  __u32 record;
  __u32 kind;
  __u32 is_in_call;
  __u32 call;
  __u64 entered_ns;
  __u64 blocked_ns; /* of the call that it is in */
  __u64 left_ns; /* when it left the CPU last */
  __u64 came_ns; /* since when it has the CPU; 0 when that was not seen */
  __u64 came_run_ns; /* the CPU time that it had had by then */
  __u64 run_before_ns; /* CPU time that is in a record already */
  __u64 is_ending;
};

struct comm {
  char text[COMM_SIZE];
};

struct children_key {
  struct comm comm;
  __u32 kind;
};

struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct task_state);
} tasks SEC(".maps");

/* Record 0 is of all for which there was no other; they share it. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, RECORD_COUNT);
  __type(key, __u32);
  __type(value, struct record);
} records SEC(".maps");

/* How many records are in use. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u32);
} record_count SEC(".maps");

/* Processes that are followed from the start, by their number. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, __u32);
  __type(value, __u8);
} followed SEC(".maps");

/* A bit for each, by the end of its number: where it is not set the process is none of them. */
struct followed_hint {
  __u64 words[HINT_WORDS];
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct followed_hint);
} followed_hint SEC(".maps");

/* Programs whose threads have records of their own, by the name of the process. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16);
  __type(key, struct comm);
  __type(value, __u8);
} told_apart SEC(".maps");

/* The records of child processes by the name of their program. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RECORD_COUNT);
  __type(key, struct children_key);
  __type(value, __u32);
} children SEC(".maps");

static __always_inline __u32 new_record(__u32 kind, __u32 pid, __u32 tid, struct comm *comm) {
  __u32 zero = 0;
  __u32 *count = bpf_map_lookup_elem(&record_count, &zero);
  if (!count || *count + 1 >= RECORD_COUNT) return 0;
  __u32 at = __sync_fetch_and_add(count, 1) + 1;
  struct record *record = bpf_map_lookup_elem(&records, &at);
  if (!record) return 0;
  record->kind = kind;
  record->pid = pid;
  record->tid = tid;
  __builtin_memcpy(record->comm, comm->text, COMM_SIZE);
  return at;
}

static __always_inline __u32 record_of_children(__u32 kind, struct comm *comm) {
  struct children_key key = {};
  key.comm = *comm;
  key.kind = kind;
  __u32 *known = bpf_map_lookup_elem(&children, &key);
  if (known) return *known;
  __u32 at = new_record(kind, 0, 0, comm);
  if (!at) return 0;
  bpf_map_update_elem(&children, &key, &at, BPF_NOEXIST);
  known = bpf_map_lookup_elem(&children, &key);
  return known ? *known : at;
}

static __always_inline int is_roomy(void) {
  __u32 zero = 0;
  __u32 *count = bpf_map_lookup_elem(&record_count, &zero);
  return count && *count < TOLD_APART_COUNT;
}

/* From here on the task counts into that record. */
static __always_inline void count_into(struct task_state *state, __u32 kind, __u32 at) {
  state->kind = at || kind != KIND_THREAD ? kind : KIND_CHILDREN; /* record 0 is shared */
  state->record = at;
  struct record *record = bpf_map_lookup_elem(&records, &at);
  if (record) __sync_fetch_and_add(&record->tasks, 1);
}

/*
 * The state of a task that was seen before. Most tasks of a machine are not followed and have no storage of
 * any kind: to see that costs a load, and asking for it a call.
 */
static __always_inline struct task_state *known_state(struct task_struct *task) {
  return task->bpf_storage ? bpf_task_storage_get(&tasks, task, 0, 0) : 0;
}

static __always_inline int is_followed(__u32 pid) {
  __u32 zero = 0;
  struct followed_hint *hint = bpf_map_lookup_elem(&followed_hint, &zero);
  if (!hint || !(hint->words[(pid / 64) % HINT_WORDS] >> (pid % 64) & 1)) return 0;
  return bpf_map_lookup_elem(&followed, &pid) != 0;
}

/* The state of the current task; made when its process is followed and it was not seen before. */
static __always_inline struct task_state *current_state(struct task_struct *task) {
  struct task_state *state = known_state(task);
  if (state) return state;
  __u32 pid = task->tgid;
  if (!is_followed(pid)) return 0;
  struct comm comm = {};
  bpf_get_current_comm(comm.text, COMM_SIZE);
  struct task_state fresh = {};
  fresh.came_run_ns = task->se.sum_exec_runtime;
  fresh.came_ns = bpf_ktime_get_ns();
  count_into(&fresh, KIND_THREAD, new_record(KIND_THREAD, pid, task->pid, &comm));
  /* The reader takes off what a thread had before the trace; in a shared record it cannot. */
  if (fresh.kind != KIND_THREAD) fresh.run_before_ns = fresh.came_run_ns;
  return bpf_task_storage_get(&tasks, task, &fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* A thread alone writes into a record of its own. */
static __always_inline void add(struct task_state *state, __u64 *sum, __u64 part) {
  if (state->kind == KIND_THREAD) *sum += part;
  else __sync_fetch_and_add(sum, part);
}

/* Adds the time of the call that the task is in, up to now. */
static __always_inline void credit_call(struct task_state *state, struct record *record, __u64 now) {
  __u32 number = state->call;
  if (number >= CALL_COUNT) return;
  struct call *call = &record->calls[number];
  add(state, &call->on_cpu_ns, now - state->entered_ns - state->blocked_ns);
  if (state->blocked_ns) add(state, &call->blocked_ns, state->blocked_ns);
  state->entered_ns = now;
  state->blocked_ns = 0;
}

/* Adds the CPU time of the task, up to `run_ns`. */
static __always_inline void credit_run(struct task_state *state, struct record *record, __u64 run_ns) {
  if (run_ns <= state->run_before_ns) return; /* two clocks differ a little */
  __sync_fetch_and_add(&record->run_ns, run_ns - state->run_before_ns);
  state->run_before_ns = run_ns;
}

/* CPU time of the current task. What the kernel says of it is as old as its last tick or switch. */
static __always_inline __u64 run_until(struct task_state *state, struct task_struct *task, __u64 now) {
  return state->came_ns ? state->came_run_ns + (now - state->came_ns) : task->se.sum_exec_runtime;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(call_enters, void *registers, long number) {
  struct task_state *state = current_state(bpf_get_current_task_btf());
  if (!state || (unsigned long)number >= CALL_COUNT) return 0;
  __u32 at = state->record;
  struct record *record = bpf_map_lookup_elem(&records, &at);
  if (!record) return 0;
  add(state, &record->calls[number].count, 1);
  state->call = number;
  state->blocked_ns = 0;
  state->left_ns = 0;
  state->entered_ns = bpf_ktime_get_ns();
  state->is_in_call = 1;
  return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(call_exits, void *registers, long result) {
  struct task_state *state = known_state(bpf_get_current_task_btf());
  if (!state || !state->is_in_call) return 0;
  state->is_in_call = 0;
  __u32 at = state->record;
  __u32 number = state->call;
  struct record *record = bpf_map_lookup_elem(&records, &at);
  if (!record || number >= CALL_COUNT) return 0;
  credit_call(state, record, bpf_ktime_get_ns());
  if (result < 0 && result >= -4095) add(state, &record->calls[number].errors, 1);
  return 0;
}

/* A task that ends is in its last call until it leaves the CPU for good; only then its time is known. */
static __always_inline void credit_ending(struct task_state *state, struct task_struct *task, __u64 now) {
  __u32 at = state->record;
  struct record *record = bpf_map_lookup_elem(&records, &at);
  if (!record) return;
  credit_run(state, record, task->se.sum_exec_runtime);
  if (state->is_in_call) credit_call(state, record, now);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(core_switches, int is_preempted, struct task_struct *before, struct task_struct *after) {
  struct task_state *left = known_state(before);
  if (left) {
    left->came_ns = 0;
    if (left->is_in_call || left->is_ending) left->left_ns = bpf_ktime_get_ns();
    if (left->is_ending) credit_ending(left, before, left->left_ns);
  }
  struct task_state *back = known_state(after);
  if (!back) return 0;
  back->came_ns = bpf_ktime_get_ns();
  back->came_run_ns = after->se.sum_exec_runtime;
  if (back->is_in_call && back->left_ns) {
    back->blocked_ns += back->came_ns - back->left_ns;
    back->left_ns = 0;
  }
  return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(task_forks, struct task_struct *parent, struct task_struct *child) {
  struct task_state *own = current_state(parent);
  if (!own) return 0;
  struct comm comm = {};
  bpf_get_current_comm(comm.text, COMM_SIZE);
  struct task_state fresh = {};
  if (child->tgid != parent->tgid) {
    count_into(&fresh, KIND_STARTING, record_of_children(KIND_STARTING, &comm));
  } else if (own->kind == KIND_THREAD) {
    count_into(&fresh, KIND_THREAD, new_record(KIND_THREAD, child->tgid, child->pid, &comm));
  } else {
    count_into(&fresh, own->kind, own->record);
  }
  bpf_task_storage_get(&tasks, child, &fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);
  return 0;
}

/* What a task had up to here belongs to the program that it ran: with the call that starts another. */
static __always_inline void credit_until_exec(struct task_state *state, struct task_struct *task) {
  __u32 at = state->record;
  struct record *record = bpf_map_lookup_elem(&records, &at);
  if (!record) return;
  __u64 now = bpf_ktime_get_ns();
  credit_run(state, record, run_until(state, task, now));
  if (state->is_in_call) credit_call(state, record, now);
  state->is_in_call = 0;
}

/* The program has a record of its own from here on, for the one that was followed from the start, too. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(program_starts, struct task_struct *task) {
  struct task_state *state = known_state(task);
  if (!state) return 0;
  __u32 pid = task->tgid;
  struct comm comm = {};
  bpf_get_current_comm(comm.text, COMM_SIZE);
  credit_until_exec(state, task);
  int is_told_apart = bpf_map_lookup_elem(&told_apart, &comm) && is_roomy();
  if (bpf_map_lookup_elem(&followed, &pid) || is_told_apart) {
    count_into(state, KIND_THREAD, new_record(KIND_THREAD, pid, task->pid, &comm));
  } else {
    count_into(state, KIND_CHILDREN, record_of_children(KIND_CHILDREN, &comm));
  }
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(task_exits, struct task_struct *task) {
  struct task_state *state = current_state(task); /* a thread that only computed had none */
  if (!state) return 0;
  __u32 at = state->record;
  struct record *record = bpf_map_lookup_elem(&records, &at);
  if (!record) return 0;
  credit_run(state, record, run_until(state, task, bpf_ktime_get_ns()));
  state->is_ending = 1;
  if (record->kind != KIND_THREAD) return 0;
  bpf_get_current_comm(record->comm, COMM_SIZE);
  record->is_ended = 1;
  return 0;
}

char license_text[] SEC("license") = "Dual MIT/GPL";
