/* The kernels of the tiled LU factorisation on a device. Matrices are column-major: element (r, c) of x is at
 * x[x_at + r + c * x_ld]. REAL is the type of the elements, REAL8 its vector.
 *
 * A work item computes 8 rows and 4 columns in registers, with vectors along the rows: elements of a column follow one
 * another in memory. Blocks at the edges are computed element by element. */
#define ROWS 8
#define COLUMNS 4

/* C := C - A * B: A is m x k, B k x n, C m x n. */
__kernel void gemm_nn(__global const REAL *a, uint a_at, uint a_ld, __global const REAL *b, uint b_at, uint b_ld,
                      __global REAL *c, uint c_at, uint c_ld, uint m, uint n, uint k) {
    uint i = get_global_id(0) * ROWS, j = get_global_id(1) * COLUMNS;
    a += a_at;
    b += b_at;
    c += c_at;
    if (i + ROWS > m || j + COLUMNS > n) {
        for (uint column = j; column < min(j + COLUMNS, n); column++) {
            for (uint row = i; row < min(i + ROWS, m); row++) {
                REAL sum = 0;
                for (uint p = 0; p < k; p++) {
                    sum += a[row + p * a_ld] * b[p + column * b_ld];
                }
                c[row + column * c_ld] -= sum;
            }
        }
        return;
    }
    a += i;
    b += j * b_ld;
    c += i + j * c_ld;
    REAL8 u0 = 0, u1 = 0, u2 = 0, u3 = 0;
    for (uint p = 0; p < k; p++) {
        REAL8 x = vload8(0, a);
        u0 += x * b[0];
        u1 += x * b[b_ld];
        u2 += x * b[2 * b_ld];
        u3 += x * b[3 * b_ld];
        a += a_ld;
        b += 1;
    }
    vstore8(vload8(0, c) - u0, 0, c);
    vstore8(vload8(0, c + c_ld) - u1, 0, c + c_ld);
    vstore8(vload8(0, c + 2 * c_ld) - u2, 0, c + 2 * c_ld);
    vstore8(vload8(0, c + 3 * c_ld) - u3, 0, c + 3 * c_ld);
}

/* x := inverse(L) * x for 8 rows: the unit lower triangle at l. */
REAL8 forward(REAL8 x, __global const REAL *l, uint ld) {
    x.s1 -= l[1] * x.s0;
    x.s2 -= l[2] * x.s0 + l[2 + ld] * x.s1;
    x.s3 -= l[3] * x.s0 + l[3 + ld] * x.s1 + l[3 + 2 * ld] * x.s2;
    x.s4 -= l[4] * x.s0 + l[4 + ld] * x.s1 + l[4 + 2 * ld] * x.s2 + l[4 + 3 * ld] * x.s3;
    x.s5 -= l[5] * x.s0 + l[5 + ld] * x.s1 + l[5 + 2 * ld] * x.s2 + l[5 + 3 * ld] * x.s3 + l[5 + 4 * ld] * x.s4;
    x.s6 -= l[6] * x.s0 + l[6 + ld] * x.s1 + l[6 + 2 * ld] * x.s2 + l[6 + 3 * ld] * x.s3 + l[6 + 4 * ld] * x.s4 +
            l[6 + 5 * ld] * x.s5;
    x.s7 -= l[7] * x.s0 + l[7 + ld] * x.s1 + l[7 + 2 * ld] * x.s2 + l[7 + 3 * ld] * x.s3 + l[7 + 4 * ld] * x.s4 +
            l[7 + 5 * ld] * x.s5 + l[7 + 6 * ld] * x.s6;
    return x;
}

/* B := inverse(L) * B: L is m x m with ones on its diagonal, of which the part below is read; B is m x n. A work item has 4
 * columns. */
__kernel void trsm_row(__global const REAL *l, uint l_at, uint l_ld, __global REAL *b, uint b_at, uint b_ld, uint m,
                       uint n) {
    uint first = get_global_id(0) * COLUMNS;
    l += l_at;
    b += b_at;
    uint i = 0;
    if (first + COLUMNS <= n) {
        __global REAL *x = b + first * b_ld;
        for (; i + ROWS <= m; i += ROWS) {
            REAL8 u0 = vload8(0, x + i), u1 = vload8(0, x + i + b_ld);
            REAL8 u2 = vload8(0, x + i + 2 * b_ld), u3 = vload8(0, x + i + 3 * b_ld);
            for (uint p = 0; p < i; p++) {
                REAL8 y = vload8(0, l + i + p * l_ld);
                u0 -= y * x[p];
                u1 -= y * x[p + b_ld];
                u2 -= y * x[p + 2 * b_ld];
                u3 -= y * x[p + 3 * b_ld];
            }
            __global const REAL *d = l + i + i * l_ld;
            vstore8(forward(u0, d, l_ld), 0, x + i);
            vstore8(forward(u1, d, l_ld), 0, x + i + b_ld);
            vstore8(forward(u2, d, l_ld), 0, x + i + 2 * b_ld);
            vstore8(forward(u3, d, l_ld), 0, x + i + 3 * b_ld);
        }
    }
    /* The last rows, or all rows of the last columns. */
    for (uint column = first; column < min(first + COLUMNS, n); column++) {
        __global REAL *x = b + column * b_ld;
        for (uint row = i; row < m; row++) {
            REAL sum = x[row];
            for (uint p = 0; p < row; p++) {
                sum -= l[row + p * l_ld] * x[p];
            }
            x[row] = sum;
        }
    }
}

/* B := B * inverse(U): U is n x n, of which the upper triangle is read, B is m x n. A work item has 8 rows. */
__kernel void trsm_column(__global const REAL *u, uint u_at, uint u_ld, __global REAL *b, uint b_at, uint b_ld, uint m,
                          uint n) {
    uint i = get_global_id(0) * ROWS;
    u += u_at;
    b += b_at;
    if (i + ROWS > m) {
        for (uint row = i; row < m; row++) {
            for (uint j = 0; j < n; j++) {
                REAL sum = b[row + j * b_ld];
                for (uint p = 0; p < j; p++) {
                    sum -= b[row + p * b_ld] * u[p + j * u_ld];
                }
                b[row + j * b_ld] = sum / u[j + j * u_ld];
            }
        }
        return;
    }
    b += i;
    uint j = 0;
    for (; j + COLUMNS <= n; j += COLUMNS) {
        __global REAL *x = b + j * b_ld;
        __global const REAL *z = u + j * u_ld;
        REAL8 x0 = vload8(0, x), x1 = vload8(0, x + b_ld), x2 = vload8(0, x + 2 * b_ld), x3 = vload8(0, x + 3 * b_ld);
        for (uint p = 0; p < j; p++) {
            REAL8 y = vload8(0, b + p * b_ld);
            x0 -= y * z[p];
            x1 -= y * z[p + u_ld];
            x2 -= y * z[p + 2 * u_ld];
            x3 -= y * z[p + 3 * u_ld];
        }
        __global const REAL *d = z + j;
        x0 /= d[0];
        x1 = (x1 - x0 * d[u_ld]) / d[1 + u_ld];
        x2 = (x2 - x0 * d[2 * u_ld] - x1 * d[1 + 2 * u_ld]) / d[2 + 2 * u_ld];
        x3 = (x3 - x0 * d[3 * u_ld] - x1 * d[1 + 3 * u_ld] - x2 * d[2 + 3 * u_ld]) / d[3 + 3 * u_ld];
        vstore8(x0, 0, x);
        vstore8(x1, 0, x + b_ld);
        vstore8(x2, 0, x + 2 * b_ld);
        vstore8(x3, 0, x + 3 * b_ld);
    }
    for (; j < n; j++) {
        REAL8 x = vload8(0, b + j * b_ld);
        for (uint p = 0; p < j; p++) {
            x -= vload8(0, b + p * b_ld) * u[p + j * u_ld];
        }
        vstore8(x / u[j + j * u_ld], 0, b + j * b_ld);
    }
}
