/*
 * msched.h: write components of a modular task scheduler in C.
 *
 * A scheduler is a tree of components. Ready tasks enter at the root, pass from component to component, and leave at
 * the leaves, which are workers. A component is a table of functions, `msched_component`. A plugin is a shared
 * library that names its tables once, with MSCHED_PLUGIN. It needs this header and a C11 compiler (or C++20), and
 * links to nothing:
 *
 *     cc -std=c11 -O2 -fPIC -shared -o libmine.so mine.c
 *
 * The interface is frozen. A later version of this header only appends functions to `msched_component` and
 * `msched_services`, and constants to enumerations; each table begins with its size. A host ignores functions that it
 * does not know, and does without those that an older plugin does not have. A plugin that uses a service of a later
 * version asks for it with MSCHED_OFFERS, and works without it.
 *
 * Rules for every function of a component:
 *
 * - Threads call a component concurrently: what changes is behind a lock of its own, or atomic.
 * - No lock is held across a *hop*, a service that reaches another component: that one may call back.
 * - The node is valid during the call only, and for the thread that makes the call: no other thread passes it to a
 *   service. Nothing of it is kept.
 * - Time, random numbers and parameters come from the host; no clock, file or environment variable is read.
 * - No C++ exception and no longjmp leaves a function.
 *
 * The host checks what can be checked: a task that is given away twice, made up or refused after it was given away
 * ends in a report that names the component, and the component is taken out of the tree. It cannot check memory: a
 * component that writes where it should not can damage the program.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef MSCHED_H
#define MSCHED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Numbers ---------------------------------------------------------------------------------------------------- */

/* Any worker, no worker, every child, every parent, no implementation. */
#define MSCHED_ANY UINT32_MAX
#define MSCHED_NONE UINT32_MAX
/* The worker on whose behalf the call happens, where a worker is expected; any worker if there is none. */
#define MSCHED_REQUESTER (UINT32_MAX - 1)

/* Times are nanoseconds since the start of the run, lengths are nanoseconds. */
#define MSCHED_NO_TIME UINT64_MAX
/* Lengths that are no number: no performance model knows the task; a model needs it to be measured first. */
#define MSCHED_NO_MODEL UINT64_MAX
#define MSCHED_UNCALIBRATED (UINT64_MAX - 1)

/* Answers to a push. The task of a refusal goes back to the one that pushed it. */
enum {
    MSCHED_TAKEN = 0,
    MSCHED_FULL = 1,         /* no room now; a `can_push` follows when there is */
    MSCHED_NO_WORKER = 2,    /* no worker below can execute it */
    MSCHED_PULL_INSTEAD = 3, /* a worker was woken and will pull it */
    MSCHED_MEASURE_FIRST = 4 /* a performance model needs it to be measured first */
};

/* Families of components. */
enum {
    MSCHED_FLOW_CONTROL = 1,     /* holds tasks back and lets them go */
    MSCHED_RESOURCE_MAPPING = 2, /* chooses among its children */
    MSCHED_SPECIAL_PURPOSE = 3,  /* neither */
    MSCHED_WORKER = 4            /* a leaf, which hands tasks to a worker */
};

/* Number of children: many for resource mapping, none for a worker and one for others by default. */
enum {
    MSCHED_BY_FAMILY = 0,
    MSCHED_LEAF = 1, /* in the worker family, and in no other */
    MSCHED_ONE = 2,
    MSCHED_MANY = 3,
    MSCHED_SLOTS = 4,
    MSCHED_MANY_AND_SLOTS = 5 /* appended after 1.0, an older host rejects it: slots beside other children */
};

/* What a component declares of itself. `sched plugin test` compares it with what happens. The documentation of
 * `sched_core::Info` explains each. */
enum {
    MSCHED_STORES = 1 << 0,             /* stores tasks between calls */
    MSCHED_MAY_REFUSE = 1 << 1,         /* refuses for another reason than a full queue of its own */
    MSCHED_NEEDS_MODELS = 1 << 2,       /* decides by performance models */
    MSCHED_FORWARDS_PULL = 1 << 3,      /* `pull_task` is NULL, or does the same */
    MSCHED_FORWARDS_PUSH = 1 << 4,      /* stores nothing, and refuses only when a child does */
    MSCHED_WAKES_WORKERS = 1 << 5,      /* wakes a child that is a worker instead of pushing to it */
    MSCHED_PULLED_ONLY = 1 << 6,        /* tasks leave only when they are pulled */
    MSCHED_EMPTY_UNTIL_PUSHED = 1 << 7, /* before a first push, a pull only pulls from the parents */
    MSCHED_COMBINED = 1 << 8,           /* a leaf for combined workers */
    MSCHED_PUSHES_ON_PULL = 1 << 9,     /* a pull asks the parents to push; so does the host when a task arrives */
    MSCHED_END_IS_NOTED = 1 << 10,      /* its end follows from `note_queued` */
    MSCHED_KEEPS_STATE = 1 << 11,       /* lives on when workers join or leave */
    MSCHED_HEARS_TASKS = 1 << 12,       /* `task_started` and `task_ended` are called */
    MSCHED_NEWEST_COMES_BACK = 1 << 13, /* a worker that pulls gets what it pushed last */
    MSCHED_WAITS_AT_HOME = 1 << 14      /* a task waits for its home or who pushed it, or for one without other tasks */
};

/* ---- Tasks ------------------------------------------------------------------------------------------------------ */

/* A handle to a task. Whoever holds it owns the task: a component that was pushed a task keeps it, pushes it on or
 * refuses it, each task once. The fields are the host's. */
typedef struct msched_task {
    const void *record;
    uint64_t generation;
} msched_task;

static inline msched_task msched_no_task(void) {
    msched_task none = {NULL, 0};
    return none;
}

static inline int msched_is_none(msched_task task) { return task.record == NULL; }

/* What is known of a task. Those marked * can be set. */
enum {
    MSCHED_TASK_ID = 0,                 /* position in the order of submission */
    MSCHED_TASK_PRIORITY = 1,           /* * an int32_t: higher runs earlier */
    MSCHED_TASK_CODELET = 2,            /* the codelet's number */
    MSCHED_TASK_ARCHS = 3,              /* bit n: it has an implementation for architecture n */
    MSCHED_TASK_FOOTPRINT = 4,          /* hash of the sizes of its data */
    MSCHED_TASK_SCHED_DATA = 5,         /* a number of the application for the scheduler */
    MSCHED_TASK_WIDTH = 6,              /* maximum number of workers that execute it together */
    MSCHED_TASK_PREDICTED = 7,          /* * expected length, or MSCHED_NO_TIME */
    MSCHED_TASK_PREDICTED_TRANSFER = 8, /* * expected length of its transfers, or MSCHED_NO_TIME */
    MSCHED_TASK_IMPLEMENTATION = 9,     /* * chosen implementation, or MSCHED_NONE */
    MSCHED_TASK_HOME = 10               /* 1 + the worker near which it is to run, a hint; 0: none (hosts before 1.1, too) */
};

/* ---- The host ---------------------------------------------------------------------------------------------------- */

/* What can be asked of a node. Those marked + are asked of a child, too: others ignore the child. */
enum {
    MSCHED_NODE_ID = 0,           /* + number of the node in its tree */
    MSCHED_NODE_CHILDREN = 1,     /* + number of children */
    MSCHED_NODE_PARENTS = 2,      /* + number of parents */
    MSCHED_NODE_WORKER = 3,       /* + the worker that a leaf stands for, or MSCHED_NONE */
    MSCHED_NODE_MEMORY_NODE = 4,  /* + the memory node of all workers below, or MSCHED_NONE */
    MSCHED_NODE_IN_CONTEXT = 5,   /* + number of workers below in the scheduling context */
    MSCHED_NODE_HOMOGENEOUS = 6,  /* + all workers below have one architecture */
    MSCHED_NODE_REQUESTER = 7,    /* the worker on whose behalf the call happens, or MSCHED_NONE */
    MSCHED_NODE_HAS_TRANSFERS = 8 /* data is transferred between memory nodes */
};

/* Texts of a node. */
enum {
    MSCHED_TEXT_PATH = 0,   /* name of the node, unique in its tree */
    MSCHED_TEXT_OBJECT = 1, /* topology object that it stands for */
    MSCHED_TEXT_SLOT = 2    /* slot of its parent that it fills */
};

/* What can be asked of a worker; `other` is a worker or a rank. */
enum {
    MSCHED_WORKER_ARCH = 0,        /* number of its architecture, or MSCHED_NONE */
    MSCHED_WORKER_MEMORY_NODE = 1, /* its memory node, or MSCHED_NONE */
    MSCHED_WORKER_DISTANCE = 2,    /* distance to worker `other`, or MSCHED_NONE */
    MSCHED_WORKER_MEMBER = 3,      /* member of rank `other` of a combined worker, or MSCHED_NONE */
    MSCHED_WORKER_BUSY_UNTIL = 4,  /* expected end of what it executes, or MSCHED_NO_TIME */
    MSCHED_WORKER_FREE_AT = 5      /* expected end of all that is queued for it, or MSCHED_NO_TIME */
};

enum { MSCHED_LOG_ERROR = 1, MSCHED_LOG_WARN = 2, MSCHED_LOG_INFO = 3, MSCHED_LOG_DEBUG = 4 };

typedef struct msched_node msched_node;

/* The expected cost of a task below a child. */
typedef struct msched_prospect {
    uint32_t able; /* number of workers in the context that can execute it */
    uint32_t reserved;
    uint64_t length;   /* shortest known length on these, or MSCHED_NO_MODEL */
    uint64_t transfer; /* length of its transfers */
    double energy;     /* joules on the worker with the shortest length; NaN if unknown or not asked for */
} msched_prospect;

/* Progress of a submitted task. */
enum {
    MSCHED_STAGE_WAITING = 0, /* it waits for others */
    MSCHED_STAGE_READY = 1,   /* it is in the scheduler */
    MSCHED_STAGE_TAKEN = 2,   /* a worker has taken it */
    MSCHED_STAGE_ENDED = 3
};

/* A submitted task. */
typedef struct msched_submitted {
    uint32_t stage;      /* MSCHED_NONE if there is no such task */
    uint32_t successors; /* number of tasks that wait for it */
    uint32_t accesses;   /* number of pieces of data that it accesses */
    uint32_t passes;     /* it ends by itself as soon as it waits for nothing */
} msched_submitted;

/* An access of a task to a piece of data. */
typedef struct msched_access {
    uint64_t data;  /* number of the data */
    uint64_t bytes; /* its size */
    uint32_t reads;
    uint32_t writes;
} msched_access;

/* A task that a worker starts to execute, or has executed. The component does not hold it. */
typedef struct msched_execution {
    uint64_t task;      /* position in the order of submission */
    uint64_t footprint; /* hash of the sizes of its data */
    uint64_t predicted; /* expected length, or MSCHED_NO_TIME */
    uint64_t length;    /* length of the kernel; 0 at its start */
    double energy;      /* joules; NaN if unknown, and at the start */
    uint32_t codelet;
    uint32_t worker; /* the worker, simple or combined */
    int32_t priority;
    uint32_t failed; /* whether the task failed */
} msched_execution;

/* What the host does for a component. The functions below, msched_push_to and so on, call them. */
typedef struct msched_services {
    uint32_t size; /* bytes of this table */
    uint32_t reserved;
    /* Hops: hold no lock. */
    uint32_t (*push_to)(const msched_node *node, uint32_t child, msched_task task);
    msched_task (*pull_from)(const msched_node *node, uint32_t parent);
    uint32_t (*parents_can_push)(const msched_node *node);
    uint32_t (*child_can_pull)(const msched_node *node, uint32_t child);
    uint32_t (*wake)(const msched_node *node, uint32_t all);
    uint64_t (*child_estimated_end)(const msched_node *node, uint32_t child);
    double (*child_estimated_load)(const msched_node *node, uint32_t child);
    uint64_t (*end_below)(const msched_node *node, uint64_t queued);
    /* Services: no component is called. */
    uint32_t (*node_number)(const msched_node *node, uint32_t what, uint32_t child);
    size_t (*node_text)(const msched_node *node, uint32_t what, char *into, size_t room);
    double (*relative_speedup)(const msched_node *node, uint32_t child);
    uint32_t (*slot)(const msched_node *node, const char *name);
    uint32_t (*next_worker)(const msched_node *node, uint32_t child, uint32_t from);
    uint64_t (*worker_number)(const msched_node *node, uint32_t worker, uint32_t what, uint32_t other);
    uint64_t (*now)(const msched_node *node);
    uint64_t (*random)(const msched_node *node);
    uint64_t (*task_get)(const msched_node *node, msched_task task, uint32_t what);
    void (*task_set)(const msched_node *node, msched_task task, uint32_t what, uint64_t value);
    uint32_t (*can_execute)(const msched_node *node, uint32_t worker, msched_task task);
    uint32_t (*child_can_execute)(const msched_node *node, uint32_t child, msched_task task);
    uint32_t (*implementations)(const msched_node *node, uint32_t worker, msched_task task);
    uint64_t (*expected_length)(const msched_node *node, uint32_t worker, msched_task task, uint32_t implementation);
    uint64_t (*expected_below)(const msched_node *node, msched_task task);
    uint64_t (*expected_transfer)(const msched_node *node, uint32_t memory_node, msched_task task);
    double (*expected_energy)(const msched_node *node, uint32_t worker, msched_task task, uint32_t implementation);
    void (*prefetch)(const msched_node *node, uint32_t memory_node, msched_task task);
    void (*note_queued)(const msched_node *node, uint64_t length);
    void (*give)(const msched_node *node, msched_task task);
    void (*fact)(const msched_node *node, const char *name, const char *value);
    void (*log)(const msched_node *node, uint32_t level, const char *line);
    void (*fail)(const msched_node *node, const char *message);
    /* Appended after 1.0: MSCHED_OFFERS(node, child_prospects) and so on. */
    uint32_t (*child_prospects)(const msched_node *node, msched_task task, uint32_t first, uint32_t with_energy,
                                msched_prospect *into, uint32_t room);
    uint32_t (*submitted_range)(const msched_node *node, uint64_t *first, uint64_t *end);
    uint32_t (*submitted_task)(const msched_node *node, uint64_t task, msched_submitted *into);
    uint64_t (*submitted_successor)(const msched_node *node, uint64_t task, uint32_t index);
    uint32_t (*submitted_access)(const msched_node *node, uint64_t task, uint32_t index, msched_access *into);
    uint64_t (*submitted_length)(const msched_node *node, uint64_t task, uint32_t worker);
    uint64_t (*data_copies)(const msched_node *node, uint64_t data);
    uint64_t (*data_transfer)(const msched_node *node, uint32_t from, uint32_t to, uint64_t bytes);
    size_t (*neighbour_name)(const msched_node *node, uint32_t is_parent, uint32_t number, char *into, size_t room);
    uint32_t (*neighbour_family)(const msched_node *node, uint32_t is_parent, uint32_t number);
    size_t (*context_name)(const msched_node *node, char *into, size_t room);
    size_t (*context_data)(const msched_node *node, void *into, size_t room);
    void (*leave)(const msched_node *node, const void *bytes, size_t size);
    void (*note_room)(const msched_node *node, uint32_t has_room);
    uint32_t (*has_room)(const msched_node *node, uint32_t child);
} msched_services;

/* A component's position in the tree during one call. */
struct msched_node {
    const msched_services *services;
    const void *host;
};

/* Whether this host offers a service of a later version of this header. */
#define MSCHED_OFFERS(node, service) \
    ((node)->services->size >= offsetof(msched_services, service) + sizeof((node)->services->service))

/* ---- The component ----------------------------------------------------------------------------------------------- */

/* The value of a parameter, in the field of its type. */
typedef struct msched_value {
    int64_t integer; /* also of a bool: 0 or 1 */
    double number;
    const char *text;
} msched_value;

enum { MSCHED_BOOL = 0, MSCHED_INT = 1, MSCHED_FLOAT = 2, MSCHED_TEXT = 3 };

/* A parameter that a policy may set. */
typedef struct msched_param {
    const char *name; /* lower-case words joined by `-`; NULL ends a list */
    const char *doc;
    const char *unit; /* may be NULL */
    uint32_t kind;
    uint32_t reserved;
    msched_value initial; /* the value when a policy sets none */
    msched_value min;     /* of a number */
    msched_value max;
} msched_param;

#define MSCHED_PARAM_BOOL(name, initial, doc) \
    { name, doc, NULL, MSCHED_BOOL, 0, {initial, 0, NULL}, {0, 0, NULL}, {1, 0, NULL} }
#define MSCHED_PARAM_INT(name, initial, min, max, doc) \
    { name, doc, NULL, MSCHED_INT, 0, {initial, 0, NULL}, {min, 0, NULL}, {max, 0, NULL} }
#define MSCHED_PARAM_FLOAT(name, initial, min, max, doc) \
    { name, doc, NULL, MSCHED_FLOAT, 0, {0, initial, NULL}, {0, min, NULL}, {0, max, NULL} }
#define MSCHED_PARAM_TEXT(name, initial, doc) \
    { name, doc, NULL, MSCHED_TEXT, 0, {0, 0, initial}, {0, 0, NULL}, {0, 0, NULL} }
/* One of the texts in `choices`, which are joined by commas; each is lower-case words joined by `-`. (An older host
 * accepts any text.) */
#define MSCHED_PARAM_CHOICE(name, initial, choices, doc) \
    { name, doc, NULL, MSCHED_TEXT, 0, {0, 0, initial}, {0, 0, NULL}, {0, 0, choices} }
#define MSCHED_PARAM_END \
    { NULL, NULL, NULL, 0, 0, {0, 0, NULL}, {0, 0, NULL}, {0, 0, NULL} }

/* A named position for a child. */
typedef struct msched_slot {
    const char *name; /* NULL ends a list */
    const char *doc;
} msched_slot;

/* A component: its description and its functions. Every function but `push_task` may be NULL: it forwards the call
 * then, and a `build` that is NULL builds a component without state. */
typedef struct msched_component {
    uint32_t size; /* sizeof(msched_component) */
    uint32_t family;
    uint32_t arity;
    uint32_t flags;
    uint32_t lookahead; /* number of tasks that a queue below should hold; 0 for the default */
    uint32_t reserved;
    const char *name; /* lower-case words joined by `-` */
    const char *doc;  /* one line */
    const char *const *bounds; /* with MSCHED_STORES: parameters that bound it if nonzero, by name; NULL ends it */
    const msched_slot *slots;
    const msched_param *params;
    /* Builds the state of a component from the values of its parameters, which are in the order of their declaration.
     * NULL is a refusal, whose reason is a line of text in `error`. */
    void *(*build)(const msched_value *values, char *error, size_t room);
    /* Frees the state. It holds no tasks any longer: the host has drained it, or taken them back without `drain`, as
     * it does when the runtime ends, and after a fault. */
    void (*destroy)(void *self);
    /* Stores `task` or pushes it on, and says MSCHED_TAKEN; or hands it back with the reason. */
    uint32_t (*push_task)(void *self, const msched_node *node, msched_task task);
    /* Gives child `to` a task that the requesting worker can execute. */
    msched_task (*pull_task)(void *self, const msched_node *node, uint32_t to);
    /* Child `to` has room: pushes tasks to it, or asks the parents for more. Returns whether any was sent. */
    uint32_t (*can_push)(void *self, const msched_node *node, uint32_t to);
    /* There is work above: wakes a worker that can use it. Returns whether one was woken. */
    uint32_t (*can_pull)(void *self, const msched_node *node);
    /* The time at which the workers below run out of work. It and the next one may be asked at any time, by any thread:
     * they move no tasks, and wake nobody. */
    uint64_t (*estimated_end)(void *self, const msched_node *node);
    /* Number of tasks here and below, divided by the relative speed of the workers below. */
    double (*estimated_load)(void *self, const msched_node *node);
    /* Called before any other function; and after workers joined or left, if the component keeps its state. */
    void (*notify_change_workers)(void *self, const msched_node *node);
    /* Gives up every stored task with msched_give, in the order in which they should run. Not called at shutdown. */
    void (*drain)(void *self, const msched_node *node);
    /* Adds facts to stall reports and pictures with msched_fact. */
    void (*describe)(void *self, const msched_node *node);
    /* Appended after 1.0. With MSCHED_HEARS_TASKS: a worker below is about to execute a task, which waits meanwhile. */
    void (*task_started)(void *self, const msched_node *node, const msched_execution *task);
    /* With MSCHED_HEARS_TASKS: it has executed the task; those that wait for it are pushed afterwards. */
    void (*task_ended)(void *self, const msched_node *node, const msched_execution *task);
    /* Names of slots that a policy may leave out; NULL ends the list. (An older host requires them.) */
    const char *const *optional_slots;
    /* Leaves to the successor of this instance, with msched_leave, what it has learnt. Called before `drain` when
     * another tree takes the place of this one. */
    void (*export_state)(void *self, const msched_node *node);
    /* Takes over what a predecessor left, which may be of another version. Called before the first task is pushed. */
    void (*import_state)(void *self, const msched_node *node, const void *bytes, size_t size);
} msched_component;

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* Hop. Pushes a task to a child. MSCHED_TAKEN, or the reason of a refusal: the task is yours again then. */
static inline uint32_t msched_push_to(const msched_node *node, uint32_t child, msched_task task) {
    return node->services->push_to(node, child, task);
}

/* Hop. Pulls a task from a parent, or from each in order for MSCHED_ANY. A parent may push tasks to this component
 * instead, and give none. So a component that stores tasks looks at what it has once more when it gets none here: the
 * worker that pulls is awake, and nobody wakes it for them. */
static inline msched_task msched_pull_from(const msched_node *node, uint32_t parent) {
    return node->services->pull_from(node, parent);
}

/* Hop. Tells each parent in order that there is room here, until one sends a task. Returns whether one did. */
static inline uint32_t msched_parents_can_push(const msched_node *node) {
    return node->services->parents_can_push(node);
}

/* Hop. Tells a child, or each in order for MSCHED_ANY, that there is work here. Returns whether a worker was woken. */
static inline uint32_t msched_child_can_pull(const msched_node *node, uint32_t child) {
    return node->services->child_can_pull(node, child);
}

/* Hop. Tells each child in order that there is work here, until a worker is woken. A component calls it after it stored
 * a task. */
static inline uint32_t msched_children_can_pull(const msched_node *node) {
    return node->services->child_can_pull(node, MSCHED_ANY);
}

/* Hop. Wakes one sleeping worker below that can use what was pushed. */
static inline uint32_t msched_wake_one(const msched_node *node) { return node->services->wake(node, 0); }

/* Hop. Wakes all sleeping workers below. */
static inline uint32_t msched_wake_all(const msched_node *node) { return node->services->wake(node, 1); }

/* Hop. The time at which the workers below a child run out of work. Only tasks with a prediction count. */
static inline uint64_t msched_child_estimated_end(const msched_node *node, uint32_t child) {
    return node->services->child_estimated_end(node, child);
}

/* Hop. The load of a child. */
static inline double msched_child_estimated_load(const msched_node *node, uint32_t child) {
    return node->services->child_estimated_load(node, child);
}

/* Hop. The time at which the workers below run out of work, with tasks of this total length on top. */
static inline uint64_t msched_end_below(const msched_node *node, uint64_t queued) {
    return node->services->end_below(node, queued);
}

/* Hop. The sum of the loads of all children. */
static inline double msched_load_below(const msched_node *node) {
    double sum = 0;
    uint32_t children = node->services->node_number(node, MSCHED_NODE_CHILDREN, MSCHED_NONE);
    for (uint32_t child = 0; child < children; child++) sum += node->services->child_estimated_load(node, child);
    return sum;
}

/* Number of children. */
static inline uint32_t msched_children(const msched_node *node) {
    return node->services->node_number(node, MSCHED_NODE_CHILDREN, MSCHED_NONE);
}

/* Number of parents. */
static inline uint32_t msched_parents(const msched_node *node) {
    return node->services->node_number(node, MSCHED_NODE_PARENTS, MSCHED_NONE);
}

/* The worker that this leaf stands for, or MSCHED_NONE. */
static inline uint32_t msched_worker(const msched_node *node) {
    return node->services->node_number(node, MSCHED_NODE_WORKER, MSCHED_NONE);
}

/* The worker that a child stands for, or MSCHED_NONE. */
static inline uint32_t msched_child_worker(const msched_node *node, uint32_t child) {
    return node->services->node_number(node, MSCHED_NODE_WORKER, child);
}

/* The worker on whose behalf the call happens, or MSCHED_NONE. */
static inline uint32_t msched_requester(const msched_node *node) {
    return node->services->node_number(node, MSCHED_NODE_REQUESTER, MSCHED_NONE);
}

/* A fact of this node, for child MSCHED_NONE, or of a child. */
static inline uint32_t msched_node_number(const msched_node *node, uint32_t what, uint32_t child) {
    return node->services->node_number(node, what, child);
}

/* Writes a text of this node, which ends with a zero byte and is cut to `room`. Returns the length of the whole. */
static inline size_t msched_node_text(const msched_node *node, uint32_t what, char *into, size_t room) {
    return node->services->node_text(node, what, into, room);
}

/* Sum of the relative speeds of the workers below in the context; of those below a child, unless it is MSCHED_NONE. */
static inline double msched_relative_speedup(const msched_node *node, uint32_t child) {
    return node->services->relative_speedup(node, child);
}

/* The child in the slot of this name, or MSCHED_NONE. */
static inline uint32_t msched_slot_child(const msched_node *node, const char *name) {
    return node->services->slot(node, name);
}

/* The first worker from number `from` on that is in the context and below child `child`, or below this node for
 * MSCHED_ANY; MSCHED_NONE if there is none. */
static inline uint32_t msched_next_worker(const msched_node *node, uint32_t child, uint32_t from) {
    return node->services->next_worker(node, child, from);
}

/* A fact of a worker. */
static inline uint64_t msched_worker_number(const msched_node *node, uint32_t worker, uint32_t what, uint32_t other) {
    return node->services->worker_number(node, worker, what, other);
}

/* The time of the run. */
static inline uint64_t msched_now(const msched_node *node) { return node->services->now(node); }

/* A random number, seeded by the run and this node. */
static inline uint64_t msched_random(const msched_node *node) { return node->services->random(node); }

/* A fact of a task that the component holds. */
static inline uint64_t msched_task_get(const msched_node *node, msched_task task, uint32_t what) {
    return node->services->task_get(node, task, what);
}

/* Changes a fact of a task that the component holds. */
static inline void msched_task_set(const msched_node *node, msched_task task, uint32_t what, uint64_t value) {
    node->services->task_set(node, task, what, value);
}

/* Priority of a task: higher runs earlier. */
static inline int32_t msched_task_priority(const msched_node *node, msched_task task) {
    return (int32_t)(uint32_t)node->services->task_get(node, task, MSCHED_TASK_PRIORITY);
}

/* Sets the priority for the components below. */
static inline void msched_task_set_priority(const msched_node *node, msched_task task, int32_t priority) {
    node->services->task_set(node, task, MSCHED_TASK_PRIORITY, (uint32_t)priority);
}

/* Expected length of a task, or MSCHED_NO_TIME. */
static inline uint64_t msched_task_predicted(const msched_node *node, msched_task task) {
    return node->services->task_get(node, task, MSCHED_TASK_PREDICTED);
}

/* Sets the expected length: ends count only tasks that have one. MSCHED_NO_TIME removes it. */
static inline void msched_task_set_predicted(const msched_node *node, msched_task task, uint64_t length) {
    node->services->task_set(node, task, MSCHED_TASK_PREDICTED, length);
}

/* Whether a worker can execute a task: a number, MSCHED_ANY for some worker below, or MSCHED_REQUESTER. */
static inline uint32_t msched_can_execute(const msched_node *node, uint32_t worker, msched_task task) {
    return node->services->can_execute(node, worker, task);
}

/* Whether any worker below a child can execute a task. */
static inline uint32_t msched_child_can_execute(const msched_node *node, uint32_t child, msched_task task) {
    return node->services->child_can_execute(node, child, task);
}

/* Number of implementations of a task for a worker. */
static inline uint32_t msched_implementations(const msched_node *node, uint32_t worker, msched_task task) {
    return node->services->implementations(node, worker, task);
}

/* Expected length of a task on a worker, with the best implementation for MSCHED_ANY. MSCHED_NO_MODEL and
 * MSCHED_UNCALIBRATED are no lengths. */
static inline uint64_t msched_expected_length(const msched_node *node, uint32_t worker, msched_task task,
                                             uint32_t implementation) {
    return node->services->expected_length(node, worker, task, implementation);
}

/* Expected length of a task on the best worker below. */
static inline uint64_t msched_expected_below(const msched_node *node, msched_task task) {
    return node->services->expected_below(node, task);
}

/* Expected length of transferring a task's data to a memory node. */
static inline uint64_t msched_expected_transfer(const msched_node *node, uint32_t memory_node, msched_task task) {
    return node->services->expected_transfer(node, memory_node, task);
}

/* Expected energy in joules; not a number if unknown. */
static inline double msched_expected_energy(const msched_node *node, uint32_t worker, msched_task task,
                                           uint32_t implementation) {
    return node->services->expected_energy(node, worker, task, implementation);
}

/* Writes the expected cost of a task that the component holds below each child, from child `first` on. Returns the
 * number of those written; 0 with an older host. */
static inline uint32_t msched_child_prospects(const msched_node *node, msched_task task, uint32_t first,
                                              uint32_t with_energy, msched_prospect *into, uint32_t room) {
    if (!MSCHED_OFFERS(node, child_prospects)) return 0;
    return node->services->child_prospects(node, task, first, with_energy, into, room);
}

/* Writes the range of submitted tasks: those before `first` have ended, and `end` is one past the last. Tasks in between
 * may have ended, too. Returns whether the host knows them: then the functions below have answers. The first question
 * makes each later submission more expensive. */
static inline uint32_t msched_submitted_range(const msched_node *node, uint64_t *first, uint64_t *end) {
    if (!MSCHED_OFFERS(node, data_transfer)) return 0;
    return node->services->submitted_range(node, first, end);
}

/* Writes what is known of a submitted task. Returns whether there is one of this number. */
static inline uint32_t msched_submitted_task(const msched_node *node, uint64_t task, msched_submitted *into) {
    return node->services->submitted_task(node, task, into);
}

/* Task number `index` of those that wait for a task, or MSCHED_NO_TIME beyond the last. */
static inline uint64_t msched_submitted_successor(const msched_node *node, uint64_t task, uint32_t index) {
    return node->services->submitted_successor(node, task, index);
}

/* Writes access number `index` of a task. Returns whether the host knows it: until a worker takes the task. */
static inline uint32_t msched_submitted_access(const msched_node *node, uint64_t task, uint32_t index,
                                               msched_access *into) {
    return node->services->submitted_access(node, task, index, into);
}

/* Expected length of a submitted task on a worker. */
static inline uint64_t msched_submitted_length(const msched_node *node, uint64_t task, uint32_t worker) {
    return node->services->submitted_length(node, task, worker);
}

/* Bit n: memory node n has a copy of the data. */
static inline uint64_t msched_data_copies(const msched_node *node, uint64_t data) {
    return node->services->data_copies(node, data);
}

/* Expected length of the transfer of `bytes` bytes from one memory node to another. */
static inline uint64_t msched_data_transfer(const msched_node *node, uint32_t from, uint32_t to, uint64_t bytes) {
    return node->services->data_transfer(node, from, to, bytes);
}

/* Writes the name of the component of a child, with a zero byte. Returns its length; 0 if there is no such child, or with
 * an older host. */
static inline size_t msched_child_component(const msched_node *node, uint32_t child, char *into, size_t room) {
    if (!MSCHED_OFFERS(node, neighbour_name)) return 0;
    return node->services->neighbour_name(node, 0, child, into, room);
}

/* Writes the name of the component of a parent, as above. */
static inline size_t msched_parent_component(const msched_node *node, uint32_t parent, char *into, size_t room) {
    if (!MSCHED_OFFERS(node, neighbour_name)) return 0;
    return node->services->neighbour_name(node, 1, parent, into, room);
}

/* Family of the component of a child; MSCHED_NONE if it is not known. */
static inline uint32_t msched_child_family(const msched_node *node, uint32_t child) {
    if (!MSCHED_OFFERS(node, neighbour_family)) return MSCHED_NONE;
    return node->services->neighbour_family(node, 0, child);
}

/* Family of the component of a parent; MSCHED_NONE if it is not known. */
static inline uint32_t msched_parent_family(const msched_node *node, uint32_t parent) {
    if (!MSCHED_OFFERS(node, neighbour_family)) return MSCHED_NONE;
    return node->services->neighbour_family(node, 1, parent);
}

/* Writes the name of the scheduling context whose call this is, with a zero byte. Returns its length; 0 with an older
 * host. */
static inline size_t msched_context_name(const msched_node *node, char *into, size_t room) {
    if (!MSCHED_OFFERS(node, context_name)) return 0;
    return node->services->context_name(node, into, room);
}

/* Writes what the application attached to the context. Returns the number of all its bytes; 0 with an older host. */
static inline size_t msched_context_data(const msched_node *node, void *into, size_t room) {
    if (!MSCHED_OFFERS(node, context_data)) return 0;
    return node->services->context_data(node, into, room);
}

/* Adds bytes to what is left to a successor, in `export_state`. */
static inline void msched_leave(const msched_node *node, const void *bytes, size_t size) {
    if (MSCHED_OFFERS(node, leave)) node->services->leave(node, bytes, size);
}

/* Starts transferring a task's data to a memory node. No effect for MSCHED_NONE. */
static inline void msched_prefetch(const msched_node *node, uint32_t memory_node, msched_task task) {
    node->services->prefetch(node, memory_node, task);
}

/* Reports the total expected length of the tasks that are queued here. */
static inline void msched_note_queued(const msched_node *node, uint64_t length) {
    node->services->note_queued(node, length);
}

/* Reports whether this component has room for a task, replacing the previous report: at first it has. Without room it
 * would refuse every push as MSCHED_FULL, so the host refuses for it, and for components above that store nothing and
 * whose children all have no room. When there is room again, report that first, and then tell the parents
 * (msched_parents_can_push), whoever was refused.
 *
 * Call it under the lock that guards what is stored, so that reports come in the order of what they report; and only
 * when the answer changes. No effect with an older host. */
static inline void msched_note_room(const msched_node *node, uint32_t has_room) {
    if (MSCHED_OFFERS(node, note_room)) node->services->note_room(node, has_room);
}

/* Whether a child may have room. 0 if it, or everything below it that could take a task, has reported that there is
 * none: then a push would be refused, and need not be tried. Always 1 with an older host. */
static inline uint32_t msched_child_has_room(const msched_node *node, uint32_t child) {
    return MSCHED_OFFERS(node, has_room) ? node->services->has_room(node, child) : 1;
}

/* Whether any child may have room. */
static inline uint32_t msched_has_room_below(const msched_node *node) {
    return msched_child_has_room(node, MSCHED_NONE);
}

/* Gives up a task, in `drain`. */
static inline void msched_give(const msched_node *node, msched_task task) { node->services->give(node, task); }

/* Adds a fact, in `describe`. */
static inline void msched_fact(const msched_node *node, const char *name, const char *value) {
    node->services->fact(node, name, value);
}

/* Writes a line to the host's log. */
static inline void msched_log(const msched_node *node, uint32_t level, const char *line) {
    node->services->log(node, level, line);
}

/* Reports that this component cannot go on. It is taken out of the tree as after a panic, and the run goes on. */
static inline void msched_fail(const msched_node *node, const char *message) { node->services->fail(node, message); }

/* ---- The plugin -------------------------------------------------------------------------------------------------- */

typedef struct msched_plugin {
    uint32_t size;
    uint32_t count;
    const msched_component *const *components;
} msched_plugin;

/* Says what the plugin was built for. The host reads it from the file, before any of the plugin's code can run. */
typedef struct msched_stamp {
    char magic[16];
    uint32_t size;
    uint32_t abi_major;
    uint32_t abi_minor;
    uint32_t panic_unwinds;
    uint64_t layout;
    uint32_t task_size;
    uint32_t pointer_width;
    char layouts[32];
    char package[64];
    char version[32];
} msched_stamp;

/* FNV-1a hash of the places of the frozen fields, as this compiler laid them out. */
#define MSCHED_FNV_(hash, part) (((hash) ^ (uint64_t)(part)) * UINT64_C(0x100000001b3))
#define MSCHED_LAYOUT_1_ MSCHED_FNV_(UINT64_C(0xcbf29ce484222325), sizeof(msched_task))
#define MSCHED_LAYOUT_2_ MSCHED_FNV_(MSCHED_LAYOUT_1_, offsetof(msched_task, generation))
#define MSCHED_LAYOUT_3_ MSCHED_FNV_(MSCHED_LAYOUT_2_, sizeof(msched_value))
#define MSCHED_LAYOUT_4_ MSCHED_FNV_(MSCHED_LAYOUT_3_, offsetof(msched_value, number))
#define MSCHED_LAYOUT_5_ MSCHED_FNV_(MSCHED_LAYOUT_4_, offsetof(msched_value, text))
#define MSCHED_LAYOUT_6_ MSCHED_FNV_(MSCHED_LAYOUT_5_, sizeof(msched_param))
#define MSCHED_LAYOUT_7_ MSCHED_FNV_(MSCHED_LAYOUT_6_, offsetof(msched_param, kind))
#define MSCHED_LAYOUT_8_ MSCHED_FNV_(MSCHED_LAYOUT_7_, offsetof(msched_param, initial))
#define MSCHED_LAYOUT_9_ MSCHED_FNV_(MSCHED_LAYOUT_8_, offsetof(msched_param, max))
#define MSCHED_LAYOUT_10_ MSCHED_FNV_(MSCHED_LAYOUT_9_, sizeof(msched_slot))
#define MSCHED_LAYOUT_11_ MSCHED_FNV_(MSCHED_LAYOUT_10_, offsetof(msched_component, name))
#define MSCHED_LAYOUT_12_ MSCHED_FNV_(MSCHED_LAYOUT_11_, offsetof(msched_component, params))
#define MSCHED_LAYOUT_13_ MSCHED_FNV_(MSCHED_LAYOUT_12_, offsetof(msched_component, build))
#define MSCHED_LAYOUT_14_ MSCHED_FNV_(MSCHED_LAYOUT_13_, offsetof(msched_component, describe))
#define MSCHED_LAYOUT_15_ MSCHED_FNV_(MSCHED_LAYOUT_14_, offsetof(msched_services, push_to))
#define MSCHED_LAYOUT_16_ MSCHED_FNV_(MSCHED_LAYOUT_15_, offsetof(msched_services, fail))
#define MSCHED_LAYOUT_17_ MSCHED_FNV_(MSCHED_LAYOUT_16_, sizeof(msched_node))
#define MSCHED_LAYOUT_ MSCHED_FNV_(MSCHED_LAYOUT_17_, sizeof(msched_plugin))

#if defined(__GNUC__)
#define MSCHED_VISIBLE_ __attribute__((visibility("default"), used))
#else
#define MSCHED_VISIBLE_
#endif
#ifdef __cplusplus
#define MSCHED_EXPORT_ extern "C" MSCHED_VISIBLE_
#else
#define MSCHED_EXPORT_ MSCHED_VISIBLE_
#endif

/* Makes a library a plugin that offers the named tables. Write it once:
 *
 *     MSCHED_PLUGIN("my-plugin", "0.1.0", &my_queue, &my_mapper)
 */
#define MSCHED_PLUGIN(package, version, ...) \
    static const msched_component *const msched_components_[] = {__VA_ARGS__}; \
    MSCHED_EXPORT_ const msched_plugin SCHED_C_PLUGIN = { \
        sizeof(msched_plugin), sizeof(msched_components_) / sizeof(msched_components_[0]), msched_components_}; \
    MSCHED_EXPORT_ const msched_stamp SCHED_PLUGIN_STAMP = { \
        "sched-component", sizeof(msched_stamp), 1, 1, 1, MSCHED_LAYOUT_, sizeof(msched_task), 8 * sizeof(void *), \
        "msched.h 1", package, version};

#ifdef __cplusplus
}
#endif

#endif
