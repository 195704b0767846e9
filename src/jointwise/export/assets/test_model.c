/* Compares the library with stored torques of the model. Without arguments: 0 if they agree. With "-": reads q, qd, qdd
 * (doubles, one sample after the other) from the standard input and writes the torques to the standard output. */
#include "robot_model.h"

#include <stdio.h>
#include <string.h>

#define N ROBOT_JOINTS
#define SAMPLES @{samples}

static const jw_real Q[SAMPLES * N] = @{q};
static const jw_real QD[SAMPLES * N] = @{qd};
static const jw_real QDD[SAMPLES * N] = @{qdd};
static const jw_real TORQUE[SAMPLES * N] = @{torque};

static int filter(void)
{
    double in[3 * N], out[N];
    jw_real signals[3 * N], torque[N];
    jw_state state;
    for (int k = 0; fread(in, sizeof(in), 1, stdin) == 1; k++) {
        for (int i = 0; i < 3 * N; i++)
            signals[i] = (jw_real)in[i];
        if (k == 0)
            jw_init(&robot_model, signals, 0, &state);
        jw_sample sample = {.q = signals, .qd = signals + N, .qdd = signals + 2 * N};
        jw_step(&robot_model, &state, &sample, torque);
        for (int j = 0; j < N; j++)
            out[j] = (double)torque[j];
        if (fwrite(out, sizeof(out), 1, stdout) != 1)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    jw_state state;
    double worst = 0.0, largest = 0.0;
    if (jw_memory(&robot_model) < 0) {
        printf("the model is larger than JW_MOST_JOINTS or JW_MOST_MEMORY\n");
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "-") == 0)
        return filter();
    jw_init(&robot_model, Q, 0, &state);
    for (int k = 0; k < SAMPLES; k++) {
        jw_real torque[N];
        jw_sample sample = {.q = Q + k * N, .qd = QD + k * N, .qdd = QDD + k * N};
        jw_step(&robot_model, &state, &sample, torque);
        for (int j = 0; j < N; j++) {
            double apart = fabs((double)torque[j] - (double)TORQUE[k * N + j]);
            worst = apart > worst ? apart : worst;
            largest = fabs((double)TORQUE[k * N + j]) > largest ? fabs((double)TORQUE[k * N + j]) : largest;
        }
    }
    double allowed = sizeof(jw_real) == sizeof(double) ? @{tolerance} : @{share} * largest;
    printf("%s: %d joints, %d samples, largest difference %.2g Nm, allowed %.2g Nm\n", robot_joint_names[0], N, SAMPLES,
           worst, allowed);
    return worst <= allowed ? 0 : 1;
}
