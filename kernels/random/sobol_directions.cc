// SPDX-License-Identifier: Apache-2.0
//
// The primitive polynomials and the initial direction numbers of dimensions 2 to 1111: all
// polynomials up to degree 13.
//
// Source of the numbers: the file new-joe-kuo-6 of
// S. Joe, F. Y. Kuo: Constructing Sobol sequences with better two-dimensional projections. SIAM
// Journal on Scientific Computing 30 (2008). Copyright (c) 2008, Frances Y. Kuo and Stephen Joe,
// under a BSD licence.
#include "kernels/random/sobol_directions.h"

#include <array>
#include <cstddef>

namespace penstock {
namespace {

// The number of polynomials of each degree, from 1.
constexpr int kPolynomials[] = {1, 1, 2, 2, 6, 6, 18, 16, 48, 60, 176, 144, 630};

// The numbers as bits, the most significant bit of each first; a character has six bits. For a
// polynomial of degree s these are the s - 1 inner coefficients, followed by m_2 ... m_s without
// their last bits, which are 1: k - 1 bits of m_k. m_1 is 1.
constexpr char kBits[] =
    "2QJM2JKESJ3ZtANBXsvDYeGj0qE24mOYrTszKU+B9s+YnzHiHOOL5GgMaOmSOqcW+PVVmjzmImifeBIEHTJdlMxylO1g"
    "bq5bpGUJai3SuA3DYe97cbzH1Q7QHT+Zj0V3/r7AtKpZviaXaxhF79FoLMecfAnZQSUHM0UlR05x6ELLkOlyTo43rz7G"
    "1CFfhwwg3Vyxn7hCSPnFv/dXopatQgjLkL1u8NtEGwQiEAomWCqxaLDns/kZFVD7RbLFUdhztS9ebKA78079NMRuNwbP"
    "vvKTtbztjFA+Oy6auAQxa198kkp1RuJ6FRSg1AFBUnrHB97VfBKgygVbO8w3/zXqC/YtP2ckE+v3ZoTt6XmQbVY11b9X"
    "oIDDaKx8PDnIMQiZTrRnV4qB2v/xiPx32lWYkUQC58SpgouDhk+dFMukZwp6t74yh63RcMnTmwYu3yPRtSrFo2JbZ8yw"
    "vOK55Qx43gv55mmsB8IAISSL3Hnepwbx2mZbVB19ykol4a7jrRqZ2U5TFQN4Tub/OIXmrqYTcils7LpaW4fPHG6g/u/0"
    "SUSzps/a+kg9SQJOQkuLe5Qa0U3/6G8wnGg6/jZKwsclw+Fqexl9JhEIJcBvlPQyk/UiAj/xyrPiiK40wS/wVDFHSMBO"
    "fxDXwL426kPzmqHqXbLpzzcniWAuET+27n1+g6kNJhIzjUwEZt98jgmqkiT/Pq1tE0xw3IZ3DYU8HRtFmt4lCpGVnacR"
    "lX21rQiBclrxfIYyXHWEbF7mt2TmPUqlTKpyWWi+8kPHOGhoCzi9ZKXH2WDptDJnlWVPz0FZn33C+kKB+H6csys56mIS"
    "Zwby7mJIVIDuhW4gYlNU/tO3aY2zH+VgxgpD8sMmo+JJOk3H4e0WJaXv7i+g8Z4RbgL4wC5+fmxGTbL6JGaWfuIma1Tm"
    "yEtQAbANiIC3ezrS3uMaDVa7fhYlSj7rL9Wvk1d/ocWewzgf5zcdwT1528+sgWFRJJzLs5cQO9PH9NGUyQfJLpdN2Cbf"
    "llJtUIDNsUWzdZPfHYa+Jdivyk/1+rt9VNnpbH6uNsntYyMAOTLrKmk16exbI+d9cFfa5U/RUTz/y89F/Mu2v4GYR2OZ"
    "ZwCv3HD04EJ1AX6K66h28RjBVc0bclk1LkCyyoMh5MWswI4A9DrXuxNoYvRATdrGzRwyN0I64u2EGBx3lPCN0vcFD2xY"
    "rZngCA6I0Y5DsDXnCwSitBxzlb21wn344L+i739xUgYm2DRF4ECw4IziiHo2xGdzMe7DjjDWNDNnVhNijcIcCW0+97rH"
    "Wo5nm6V2td4ex1F1m0uFGNtD1+QmpALaruIbhKx8k6X8qRN2ACG9auD8kgLkJuhuBpRKE+5kTNxT2Cd6LZBPtp9+E8wE"
    "Vxu0xcxKJllqw6MimEUnKMtGaxtQAqCmd3kiid/pW49wYQp3GAy5q5V41/qd+l1+gikY94JYL/Z+ILuXYjeYI8V/vkJY"
    "hgxx7GVjJUlkpq/PMqUQXInzW9s2SyKgaxm5/Lasu4MOzOOHmFTQUvjEdjWloZclR0s8osFBgFI2wx9xKfhNm1uK0AMX"
    "XdUbSh/IGAs+IqkrUpQn1EZBihRbEhUFV5CHHFUJFGUZ1iT3WdqSSKpzP5TLPkwb3bG8sFV8psjNFjO+lalTyYIdR5wu"
    "wwn7ZFgYXi8u5QoKjegMQXNakKDK+mctRsVOuCRt4oqbBKmaHsemt5AYVUPP40nrGR2rKq1bQEaNIhWkkDl9sV7kq1D1"
    "+piMXam1vW0nhV/spILpFqSN5NHbDXdFu/fWGJ7IvF7NYaYXlXlfd7qi1376PzA60Egn8MtMWEed/AgLfvysQ+Jz5mmJ"
    "z7ZlyWF1fzm/Ez6lN83oQrVxoEkTqxn79bTSkywFkq2wXWsIZdS6RNAJNePjJv1N2YYbIyHNl39Mf029nfEZ+nVvlvvz"
    "fZXuFSlLh/YKPO+rdTHFppkpEPUGQuSIoIAQKpELcpGTEFb15F+6+zEqk+mJjZ24CylAYUpvbvHzx21x1z+Hk40kEiiL"
    "wyPbP6yQXlIkNe55TwKVzTs++eZ7kDy7/7h9tDUsHxmAlUC82aTd/7meIGNDMlwQ89oQZZPSidSEhHg9j4E0zqep/FYJ"
    "GdU2Ku9eMApC1CMNe9cazJS1orDBOI5RPHMIjOcJyE1FVy3xEV6kTeve33wHp3JfkDFuH5U8+TVlKIYDh8xcnD/QanEN"
    "YHJZx0aOggQlcS/N6Wo6GBH+mN7xczEfvJvMyuJOHynXN2aaqL+o7wYrs1G4/ASw4ZYJxS8sudi3X9ToKizucyCLsntV"
    "a79JmCzrQLQK15VfSGyhxRV9BypXb1HZJNBRhEtlaTbMDu+EhH5UtCi6rQuhAYqDWViA05K+/UcTiKaBypgiqgChAqN7"
    "Ad9WBpGZWlqAMqxTgDOJXyszVvfcqrjvD1triM97tpBtjzZLsaR2QOq0Gz5A/WIJI1ENqErQA5JoOArdQ221DNaVc29r"
    "kV79S0NfuRegXfa82bnddojlmzhpPW7alJlQ4uRCt4EPb+Mo2vHrzrCD6QkVWm31s82upMMXawJb0YBmtLeHhzAStXbh"
    "9jXEPMFoiKOvbOJ+/UbQG/w+sVfCB/RQfpg4zUWkLH3OfDxx0/dj+Q5dTka8iayJ26hDJfAiy4fGo/GVZ1pKadqxO8vz"
    "d+yL7lPV5xRkYIOTYD7z3uYCzBaeHzn1ShOXeYQV/QD61rZweft2kl1ZmSrp4tNPDMw/mGxvraiVMHHO7DE512wZmHly"
    "zQZs/Jy1mAaGxbbmTpaUSHpN28qGPRRkssjd8c3ZyZg8LtcKjmdT+TymX4xk/EmeSVoXzHF50mO5r5vmytXOY9wt4/XC"
    "rduF7/O2u1P3Nwixvui9tCAZ3fyCHx7oB6rCFPzMf4IO4sHePI/PyCSLKDFNSmPlwnxN7AI0/fNt1fHJdSohemcn8k3C"
    "VCo9bkerYXJnmZ7WKpjXCusLj5vJhyJeK+Pf06lEqbz/aGPy5w+ykuEUpfpmSroSGU3DBS2PfKEdl9054DSAb51b6YC4"
    "LoHt9w1g7jeViAoPrT1lT2cjOfYgmKv1QSh6Gdx+BodrBe0/8EKDADrud+tgtbczLcIN3eWqygIz0fcR5rya2sHU7XpQ"
    "kcWKaJY2I8USROwkBKtnf9FBmCnjd3q9/XXB+AFXtXGRH+YZCcmLAfkhpJOBpLuEWqzR5vnsLWZnwwqrUv9veZF4lBs2"
    "drzIhmBBbfjsD63wQx2JqEsHfIx4bRskqMwGQawoj6JgVr/XUjdu84erNBEogpHj1RDvH6QU+diZiY7aeJwBHW4E5IL8"
    "onjlgelZJ+DQlql5APPoEVw0Ydon7isktQsC3nIB/IeVd0pZfYhImlTyoElDDupE/rZ0MvUiGOv9gSEQCxtfxMgaaEld"
    "Mfr2toZx8z63kzAXxrEz+xe4JSTEDgCpph+rqPUySSx/jcDCBFcwlr9V0nMpaE2NMN2o8rOjsePZvvVGZModTffdXlvd"
    "pp+pAYf9+64S4N9A6GMCnysfF4a/UUNhHd2cTN5XdbonKVRKUFleJlvRdjJlETGR9wyOjPOamFBQC5vW9HUk23YZTHOT"
    "JKUyLPA8HfYz0aUrFwbXkSxOiZOppSrheP+Iv1+RUPLOh+TXclbM2o7jgkUdCLokJ9U00EXhWwD8hC6yc5k3Rlj4rEi1"
    "xbKt7NALxM1sLrwuQyWle6Q6TXcIC2IHbD25nivWK+skautjaLhglGofYEb98QmTI0KeK2e2ZxkPmVH2QPRLAsSWmssa"
    "JKXJ8RUWyCakEXwvkc1yrmi14U7IpfyGAdbNxW6zHPwYEGMbzjKd+1VcQ/BhnXQnGXm2s9TfBfOilY+qgaSe+dWd1cot"
    "vIC/ChVc8S2skWL7qTv5h62msqwI8elK7L2dWJQKT+4Fra3vk74X9hqaKCevgvTl6jRt4+o6hWp83Q0/k5smBC6rTaxt"
    "PqfrlCJFiM+F7uhm408S34RS1zUc07EYuHd5JRXWu1npR398zqaIk88L+ka2yDBi6pCtXBJrsspMW4mH3QuUE0tFRLTv"
    "k/J0srrVnJoeM7InZew2A86XQAFo3zFwOux1zCl6yomxF/GN8b+gFK9N5CdNjw9KnuVqclhQm/auLW0/s5/QJ3lGttqu"
    "1Z5ltNufpjjOtf0NKq7J0bZroh9orz7KHOUd1yHHRlDw5Ke967zFimlKS1oMr7X/WtRfAa87dAnV//K0KA9YzcSUv6/V"
    "w68bDvzk+Wgar0wlwN9xY8hd9YXGpbiPG4ypWuxNcFZdcZfuru1j1Lnjaq3kGLxbVx9g9H6QfcbXXIVIUl6gDkp8yumu"
    "1vs9yzydPXd+rOoD3fl9DUq8G2+LcjzOn3ed6fy7koF/GymOsBK+dMYrPxlKdYIUk16z/H9c27wWl9hDhal6HyPhOmT8"
    "XWx6UE4XExDOciv5iQyIeQ51G1/6QIvWL8n30YS9ZqEGBTZS9ORTvIJ2eoWy6nEOeSUS/1EXmJcsTTb9gfAdjMnJ7qKW"
    "UH1llOZyKtyKY/Hi3b88l1Pq+qCQztWaDGB7mFzUBboB0jyrl6BG0dcG1qFlSKoE4Ac6ZvVAVHPZSSVD9SmrWNALyeLA"
    "Cq4ddcEeS2wBuoAMbCpkLYpUpeihE2IMaokN14p8jnwpulkFarTHRo3hmWCoZOhFLOAnFzXm2B679HfsuRPpyhO1tgpv"
    "D8oSm1I9oWqvKL5n0Bm6OzkyPfvzmsQkYhMqHo3To5XVroSCpmiTHcbKJMA4inmsWfEMOOEgwHiA5I+NlD6yCEpTUPd8"
    "nNOAQqealJsX7jVHG8X5wV7rH5hBhmjxWFu0dv3QlXXBxNQMGOvvaiGwJwHm7my/kk53AcgmIh8zANEpKcvFfVOnfVSA"
    "T4OKxA7OGXtPLZAaBzaSdT4sMiHftAp2IzVLaEOqY0/PAyu3l5vdPXmNePEA3kKGxExzpVSwS1BFUOCpMrx6e7M37BGg"
    "86w2oHD2wITwBPUI+j3vSGSRAkKBS1++CvAMMEFFZjBXLgORsrnWlq1VcBdyNQnaciUUg6wTBeMQTeTz1MT3YfrBhU9L"
    "oO1X0jwEspBkvv5PHBzp5oM6XBwitj3q117w7/ylB5QJtCqJDA65tJVCGTvVTX/ws8Ii9ZCKoRUu0deWy+CIqCUwahMe"
    "SYf5t/iXCX/oxWFrZyCwZSSCdB7K5xDj7rtEEOChwQ3FffHKkf2uqCzFiiS+UkLjxPSpC1xspfMupqxsN+MC8Zjo1pG9"
    "/GDkNXDEq/tGZ6hkGHyOLDL6gwicILgBRRw7DO+PT0gGR0snZW6DfZ9MWwXbnZFQixDgAwhfDAnSW9RhIDjkKR/bXE98"
    "DlTtDm5SulkCODHt4mODvI6x0+FPZxmneiDxLxXhzpRKzr45LD4hWPb0o9Mo8ThiD9DdnnUMebaN9PcEMFEZEOsWBf/V"
    "UGES/02D0gqLtqCzPEb5MEYmivxUJWVEEew+QqNURoU9s3VEhPh1KCJqe1fT8iEtIoqi92WnG1vSnEu97m93oJCXPh/W"
    "E8Jk7amy+igr2zAE/i6Mgsmmt8te/oFESlYeLgVCzW0CdFL0P/TAwy3hWAMVFNF8ZnVzIT7qtMIFZaka9WFPNMkbvIFf"
    "QPDaw2t9r48wvFmDDwjMB6FyW3XGF3WhUph//siQqJMF7hY6ntpZkikFUlF97rtsrvYaqSDw0GCV3RWliy6zsiB/GTJS"
    "DoGhAAZI3/UGVo4REYZ97SCjeJGjiVJaxXKwpWgOsGqHbNZP3mNPL926GsNbctwcD3fQBumG3SPQuxq6TmcLobG4qjWf"
    "24w1J9CirG+2CZnWgwQ+4Tx+HDZ8Rg6iYFIA/kwHGXdo6p3POYbIUeHKpRPAZEKQGXG6+HRhVQLDQLctLOB7HUZhXxsh"
    "YJgSJG7HYy4ue90oAhDPKIHbtAgV51+9U/IG8Hd8tJNuGZOa7zoiHw56xCLtJVC1A7kH252SiR++hror9nH8aEdceQe6"
    "d3hwDIFGKxFML87IPb1YIJlNSYtqa1FQFBiIPvHnkIOsfqTgBeISKXfMR0qD2WQuLIUf6wHikULnWCaBIeTZ9DRjJAwq"
    "qn/Io9HYo86Vc8OWTJIrL7j1nWk4sPMQ3Iw1vGUSpUMCtq8cI2mqLacJQ0H0t3VI/tQl9PaWkof5EtJBD/0yD0pCsy7g"
    "ZJNzqVd+bcX3GeUdJOUi6LICy0hJ/5iJaRWPGO4tDhLf88JfiT1M7DuPpQlh6Jg1lO/C/Nr5Fm6oJjlb6L9oz59XkbZJ"
    "l84YtEojNpZHx0Jx9wKeH1CzR/amRKE/YUMc6flAcvsfKL8RJW5JvqqxREmKOKq7TaVycgJc+MKQ9R6xX8ocZ08maKWX"
    "+j7jHtaoUNpFKcGjSLEcPNpu/WHKp9vIwQYcD5YAibKqzuFhTPDSuIsLoKxLAxwZ/uwTbDNwK4rY91+a2S4oIX2K72JO"
    "2mt0bfXB8bLDm0Pc7yGOp+bEeLF9BfrQPWZEt3cyLKq0vwHOMf+2nXALMpfHk90h4wfTCgLPKS9YAZ/OOxfyhLX8CFcT"
    "qu1hGS1QLemm1/EOqU+6hixLiaP6CPdjFH3+2PLnGSRaIGZ9xpWGuLru1Q3Q0whWTFIoL1dsxUluiQSVUxDMBbxo5ZxC"
    "YSpTb1MCTbGNNxAxYIL/FMIO8hoPmuGF5VAaMWgqmFJVzSSwsR6Mflih10rlduq5uVMlETFmbMcQPPBJ0Mp5StkfXFM2"
    "uBcHMs2Fju0VN7HUtu/M0XPcGdqTdBp6yhM79rh9uv1jjtJ35M910BRfBX+OA5duNDgZddZamudetvcNJaiqR6Zm2+Ab"
    "A5NM/z3od2p9wDpO5NYa7kvYqron78lRNbFxLIBJB7f0cE4Ne64/NfFYcdORJONhzgYuAsPKMdljjN1lPgb7J7M7DM/J"
    "N6Wr/PRz5m08ZTrOJVFo638k9q+UXaOUNom0yehSUe/V2OduTnnpt2LxmL3bOnE5WJG775Sf74BOrEVBDAsIad9wZaOu"
    "HrNvzlyC9SYP4O10t0xrHv/GQ9MuO5K4SrwI1tx9kz4O8LPyza50AWhMjkPBNPdD3CIvjG9N+PI/xF1L7s2ELhMtPQGb"
    "43CyjoIf0dpPcNB+sjL8B9XVAzPjYv7GBWRgGTQuTPlYAFSaIrRXJrjLPvVPwjwMWVojK9JP3eXQudINOpocQiP4N1ZI"
    "SURdyRwx5QDqewJSYFfF7CpyQMuSU76BjEP/9GMQPz/Ycit6CTVvuIQRfFgFoGPKjRd6KQYyjUAMQkdUqQSHQdr2+GRd"
    "UAPr192QeKsgNIeBO/djXuQimev18hRGDxZpCQzGzWpCVPlwxcHFQ6wuVQhnoKmW6onRCbzjpQHu67tq3GRVoZn66MmT"
    "axXxkRWR7c/wVTyFHxPjRfvjE49gOlnUbGZRmXwPsi8AhxpTe4RqxdKnMoYgAgJS0RvI2vFkD1Ts1VCURxF6bV/drCEa"
    "A6DR06FxKHcHDtVogkR91XdVRry7IyUe/SEcK24LRXZLtejESH36s4kLaBfEOmdSIPF/RM6TEypjBHSNUK9fdaWGGZ4P"
    "ASVoE7W7c9vzTw+9Sadfm8VE3PWWDsOSfyooQYN8ySqZKuSgd7Nw5sNwNzWPdSluErCW9XNoGM7oSqGm1nwtomnnJr5S"
    "7jNwCac36BmBCTS+nIIBylGx5WS1XTAHgKLF68rRzmV5TJpSTn2iTyEKQx1TPHzoDsvA7GyjyfTXiDHQoXLLXgqNCTb5"
    "SRO7j8yOrJGYTeHgkOo/3dE2w6NThm1qhVVm6sjDmKTrmhHvdHOMfkDzHT56P+BMyisIC+9pT6wFtUBQ2vmbqFbUBqrp"
    "lsRBj2rZBaUH2A//auVF0yn9BUOy8WxnMt1c5DvQUQTaPAyDYRKzsN7UZ9e+CQbEocVDH/UagE0WmQeNNmJFSUmJgaSb"
    "8IkWCsXPU0GEt+PiGx39GB3U3fnQMiz15W98XxU4fz/8A+MImxR/sU9eTHjkkHfOlrAXU+uYsYMWk4hSzrdVSGt1az6E"
    "e3ovFXVUbYY1sa7fVfL05VY9MBpceBTlngIhViyBoAIfJ1EIMuCVr8mBELUx2uBMA7VtraQGv++oPSY6rV1Y5J6djisu"
    "MhvkV5gJ+7+ma3R+qqRWAaIXt8X+BDfpQfWKXAlYIXc7YOK5eWRhv/qn/wgPqCjcWSr1h6DchHFuyChWX6VIYLGyq82h"
    "g8WbmRQwOHhu6ZVpmWhY8y8FacmF0zz+Wkr7ZmXRFptJDsdW2O5MeyoUh9HVROW/IBpGQwR09flRPXCAGg2NGIF64cuo"
    "XLsFHZSH6TbFeRKXNDe4OE5zS1GlvbXW3iFSCUjsY1bsvXZV06XXPSVn1ZglXs7DcZGZApkOsHSXylqQNg7VKL/La2X+"
    "shGDuWKgnZhRqYHs4O7Kx2Rd0Y5oYQ0NXrGrrXhsimdYVKZ+IglYGAsI3SYWq+OoXL/tJcE4RYfuiGPrI7wnPOMRYgl0"
    "4rbWTPd1GGuYmWaLf+b73C04olY4FkNhJpw9S733vZFSrE4j+Uot97GrZG65NTY0grTac6aZKDxH0EavQ/XWW9ZRsleh"
    "OvqQ0jI/TZXwIpAHKdWIWYYeZeOcXVlFJB3I4T0ZicJQi5p8Mt6HmXZoEapBooxmIztcxZruxQR309vlBVu8ZwrCdlXJ"
    "dO56vVzZzMnFr5R/QWWQ1AZ1UQo/gVSmtsCOOaG/5efdfCEE8gzZaMsrPptvoVt/auBaUTGhvXDS/5Y57baXELDA68Pv"
    "Xn8KKabJahpdvBaBZN0ladY9i4T/m//p3LzaiPdbQCClIVB43DattgVCRKw384thLaz77rCfG4UURHxCa6tZplY1Ek8E"
    "kpBbEf5cnJ13dvf0UPbHMg9NZn2+pLyAFbTKKUFATaUgPrp1bVduQQUEfIEBOs5ba+wjAMT7FRNvLQbxRo/CiE0RTcUv"
    "6b4lZsjaUUZK5a2Wb+OmfqQgAUJRFnfcDIV5Tni1ixj3EScJ7d07MXsmx4YxYcKS4mBDrsBSLuKicUoom+gjC56wvOCc"
    "kpWZUPeQKX9xqkcncVnH3FTxPAtPdctkFWcLC680tq3LcuLAoQf4dx34D2ccwJeekHtdAtGwdyc1cn/sHPgxyTTYfdH/"
    "yPpaqyR5fo3MdIC4i/EZ2PUMcRvdLf8kbqOsbRLNxBdOgJM4yWZ/TlCZZdVhjONzfCqChtDWdZm4zK4D+K9Xk1odcPNk"
    "ohN9UzpmPldvx20aRwvpeI5WXd9ICcTgOXMGmMdSd+OvxtuZa9QViffeC6LvWKXtDbFpMgeEw2GPbysamYCn4eIIYmeQ"
    "L7f7BSQWeL2JzapuqSY8OjrefAPwnSCjDufbTFeguBGaNvNTQNp2rel3zTl0Mrct/8WeemYN9cD2geEpBkOesHpBY4JP"
    "7nt/YKevMiF8BXcxH0kSKeyztL+h8kdXP7RYe0qJM/jlWNr54cbfKcqmDtAwGBbT8efSdRyP9G6m4gUK4fX4bL05Y0/J"
    "bpCOfYHowhvGBN1pz4hfnbyTXafMRDJaLmfuXtCPuhyY6cwibfzLTtTT2vuZjDLVf2seAX5AnF910vUf6gO5VB1FJjb1"
    "ugf/9Ghjq7wtEdB/agDL9OdbtL3820IpgKZwd3+ZHHZRc2DgM3Tk8dSAVbBgFagXw61phecxtqB9NgkOXynO6rZinJqI"
    "gn9LMJrxF/lh7sKgz6Li3VExkLM+MKg8xzedgo10fhH7zg/IqkMF+a89Y2ayhIgoc26ApYR3CTYhQxFazWVuL9ABYuha"
    "QGWxJ59cxNNeOhfS8YWDG2N1616IhgAjuHTClT9MvDxhpFOmpo3H16PA7vhsp93QG28scwluMhyGsIFPtn/E+AYEh3RK"
    "8D2Jw4Xg77TiCnaF3bpa6wfWfhiHwkeXNNuFZaHQBiaUfC1HYv37hkUOij8mh6wum4aF0icimQW36rCbbPDu+OivvagG"
    "fZkhNteVYixpbBQ9ix9g3H3ui4hOokZCkMIguHei94fJeq+1KuxqatjR0yMMYRZlji2M2jUteBtouFe4bbKkjbxz+8Sg"
    "zKwMF4zjigLmJ3NvVW+4c3jk1VRkl3caxHc4DjtvLVuaqD60sO3vjwfVWKcflH18WpLj1oRS1fibPP0s2Xj2PeHjx9a8"
    "Z50gzj5E88Y6sYch18Csj/4t18ujtahsrXNkEbR060/41DKRphkHVaViRKd3daHEGkOzLrf9vcv6h2g2kTD0t6Ci0Li9"
    "sdlkcF2GNcZ5BSudgSklyaR7GIZnI+Cq5kpLtOqqNgp/DhDSkszYjKgrmoPV5pLkyHSyO3IQ7uFE1flAdSxG1U0VysiW"
    "qlJbqqRCRWYR2p2+lMu/SQdK7SJ66qnlPim1G9gbf/+TGKlUZX6J5/jJy3XaPlbUbC9x3N1/cZP+ld5yX+8ZWR49+1sl"
    "hc+XA/B0E2sDrPlrkvve4kLn12iUBltGODVkhLmBOHkZlzl+ReuGWQzlCg9mDulupstEenuLAsmKPFKPsYhF856wDmXb"
    "tmsXxfc/B59jmouE4uJD0b2CJrLmuxy94o4TL6X8CTm6MlOOq1cC32RTsnLMLD55O1h8V42lnNECmzv56rY8t+rnVgaG"
    "z2QAM91qhUnclTlO4vCspDk3ungZXCG1ySCraPjHnjhmsOAUwJlgoeZnqdJzNeUhoARiyTnx/qHVv/elA5outny6QP0m"
    "ziRcX0Syn7zkUDDxXl8rYXZn9QVSjiKINwoJSfoEodGSLd2DMLGo3oNJHd7ElMPiettvoThld2p4idGkk8Yogls7Xzpg"
    "YXlyDMomH6SuV02wTPGVUov92atB/A9tmgD3o0dHVCG7zfb36DFo7AeV3R7fVKZlqQo9rMoTRF9c1kJeUpDRnGvG0GRY"
    "0s5rpJaymTxoSXkRprapMLMAgbn/r44rA1pS1KP7CCxTJmTw4peaUyy3QGXtceQdpkLL7hhlJwcq4/aptyGo80/ekjc6"
    "mBpzb50WvPW5cu2vdp8BWFkrYsFnMeD8qGwaRLsCkX9MwQZqP+LGfprgIhPrPGqSkAJmJ+YOkxtBuqY3okmTK+ZteSvO"
    "qbI/ZinSYvDwo86qiItXls+Voj8yhuqnpixG+FxvFqOBNquHjoUIHst3hMWjq2A03aZ5+PO9Dkrq5i/CtIYmE8I6D8q/"
    "eX5X5ykmB9DgWrO9tpEGT391LBZXrQU4eAc4bzWrlIwrckbGLWhMiqX/pQrmHRL1ADFaSxLV9rqvdN5aVzz1bLDzrsEG"
    "QYlxAxjEAJ0rxXcxDdD6EeGVOEr0h3h4mLGatE7aor3Ac0KkLx+xwHaRsArEDw8UhX6fx2ZsFThtCc1MwHAwmJsPCnFu"
    "SN7Si91nosScU0mISNvi6UvAsXfUcuYDzJjlKyrsdp2V5SZKUNbOEZskxrDlk2nO/DXW+soaVKsRKqeBh6KystycMShD"
    "J9U6kxps5wTzBqfBmbqIEzs61+ojIj5ZT4ltftIgcRzb/7DY8u2BtNvjFrdrB3VgwTktOmnwrdRwiFIspttWcjfS3jSC"
    "LHIiztljxPpIARSzXKi6tp5ldfVocn+WmOGtqqKpZ6vxYOvsWutxLIBvPAQE7VGOHt3g1Nf5Bq2z/HUtuC9pAqhfoHHX"
    "e4puHqd6mob6PoAYvKuNfNsG84E/UnHqiuQ7vbNP3BmMa7GPuWL09+CoZ7z4GHjucfkdxTYiZkYwfBugdY7SLYDsXaPw"
    "rujZsXORwG3b+cw8upFgCce0pMUALmdu4E3lXGCHfWe+2ru77ceoidDGNnE82vFj4K/ZOwDR4/Y9vKPyb4c31jcLw77v"
    "MYGKmsx38ALlkxvRwB5ns40hjOQ2cviKmjHlw8w8BXIIvnDc+kYpEui7hoxvoaZq+Pe0jvpCRQvr3t56gqCDEUn87vuW"
    "oK7F16+wzR9pvwBjVW0kINOm1JTv5Tj/ANciy7b1m2wBvdSrdNrBWDTcGwCQd1wK0sit+wDUwL7anNed6ge2Mi0wONwW"
    "ZrTyqkDH4swTAA2Wm/UQYNTimwZ8+1M7+rzSIocdwlDAkQhARkiXA8Gws4VzMcmbGuyGsEw0AqoyFYfmXJ5mKw4N3+5d"
    "0wxxNHZExRO5vcb28pzJDE8xYPsU+tRJXDSvAexd2kQBPMjCxGeKmxkumoljgb4SQdsSxnwsz7ZllDPfY1wxwTEjVfDK"
    "lA9oixx5T6ogJoEzn2+/ox83jAUdBwOlHOQ/yAN1ps9Q/eM/oPfyDhvnaHwkBhZ7pmyFwmdZ6kpG7APNVyJIJg/hBy+1"
    "3q+zyYu00yvaDibID9pynmvPRKluiXY1k0yzSlGNMrtC4GKQ6y22DPelSStL32aHzBX6xEAhVmEVI5kzCEsY2gDZZPYC"
    "47zLCTtgHzcJ+Th7FzQjoBWUyaFbVfK6zT+N4PuueU6kSxYzWb2GuKStm2UFAzzl0yIX5ENX+adOIzmeeMKmTK7R2HGj"
    "zptFDcZ794ddrJiz3QWVfTkozg26YQz7PF8NPaAiioqI5z+IP8IgF3PPvKlH0D8mHDr3CfA0ArH0UaAOZJkN8TG2yp0X"
    "U7DJDb5TXKUQr0eJARC5smqZKmvn0olFQRQHK7S281g0urTjb8nR5vRO+a0wetF0BOIe0uKgr0zC/uJDUUjdi3Nw05cj"
    "U0XZYIMcgN206vri1Cls5EbLgm1EMEOmS62zlp3z81cnaozEkKJYb4rw1f5IkVjgC7DIyhK1mCGwD3M4YzQE7q1p0m9c"
    "Pwx4ZaoRg1qmFg41a8anUI4o1vZ8WZoA48uc40O1yIITEOMuq+XO+N10qn32OVgNVC42519jKj/KNjokjfFI2IlI7YOB"
    "DwGrKr/2VQHTP5NilDdLzT2W0KhU8yxHvdr8G2a7QN7RANUvoBsh2fJ4wn7gUBVWfBV2p9ospEV8SoxU4D2sX8R0Sbu4"
    "LqruQ2xPgCyIbojQkc7f2ym8ZYfDJHNOQK923PIk6Y0Y/jTjlW24hi5IY1dq926dY27dEfmjG2xJGn2/3FH6wTancwjn"
    "Rfm3MjXkixkKzI+4oq3SVWCQ6D/qkLW8/3Uu9iReCl+p0VDQ3bA/yzmJO/xO0h03dx8ItankMqRV9h3oc6wyHHLFDeMR"
    "Y3zdXPnHq4joUlgi358abdMLJOQwRkS3/P3Qs1OnRA3gj+4Gje7ICBlrd2Iza4JxC9pW0joHLWhW4KMXLYvPRVj7JL74"
    "PN7GSWVsTJfiiS4RZsCRm9wNFdC0I4SRsv1i7pjtsUUV4dAAUf8Kcp0wRqT4nWt20618qJFDJM4uMM+QG2NS6JBvp423"
    "dK9mXgk/htS35Bu0tNK49xBeulk5HN/oFwar9v27Ip5OrwNA0ughsWVty5Tt47FOd56H7Ihp5Vh6DQdbrKvqPag5c2vA"
    "IUAWVfjP4V5j/BlrihXIvHOJO50pjveM5N7bRIBg59CKJ53aZoJSydq5+mSQHgdJ2+JjEZ6B2FRi8HugVFep46L4+G+E"
    "R5H3XDzp6NwkMrs3ZjtrYmu6QnnoM12pHr59wt6WQFKzS83ApxnjB6ZbY2KxkRYoTZu46aZZGEBEXl7hbdG6gcQS0M5L"
    "WlbYiR6mAmMTiYaLtXMB76yWvw0X6yoQruyu60OehuySAwkUj2n6+ueUb2ODCcqBu07AtRgoBlWFQvnV37KwPGXP5D/u"
    "RP9K7YYg/MW+66b/iXN7bKbZatFxuhKvJQ7hqK2H54UyhEV9d7owAFg3Lf1mEwSZ7t41wU73ytDI7Gd7zJzH7dfALTKz"
    "Ts71TLOU12czP4JeF7846Oi2OsAgjFu98CxZVNZuzu7vF0j8EKFl7lmjlpnSyM8Hc8JFdIb9KIWy/8NJsE5nSaLaexOE"
    "8VQGY6pUpzljGrl8fwr1ex9msQ/UBy8gFvdTy12JOjfaW8pu5NipEdXUVmfD8y+n7yYhWgCt9kv80NM/7RZ1mh8fae9F"
    "DlWND5gdB3ODv9RO7N/0bgfo2guf9eNv/nZXTavMBSn9iaK0jACJiyv6aM9rBYcNbU0t2VUok9uYsPYUmI3cRuhW9wfB"
    "c/3blplTIx39895q/8XpXrn3c0+G6maLnQXRIikEt+MkWBuBnadHqs5F+PNR1Ij4exSYiuX+Si/J1UZe2VbWf9+bUqum"
    "d6WspldI5+eNkVDt7KlOAWzS+hlHILJPAo/CVnZ+iiXVRMcoX1oHcV+kxj2FLPWRGksrA+o5TLCoBOIiCaB5+rRXosHM"
    "r5xg90j+w8zBVWPXqmicFk/BMOK4G3kWWtAeg/Eg7iJt/ozNxKwR/I/g/SmzKIc3bp+/VRryLAjq4z2yIM/aHY/yiDpR"
    "oZVNC/xZFO+DdVKkpdMK/7h0INbDNTI5oZD/+XkAelOlpkq1MX";

// Reads kBits from front to back.
class BitReader {
 public:
  uint32_t Next(int bits) {
    uint32_t value = 0;
    for (; bits > 0; --bits, ++at_) {
      value = value << 1 | (Digit(kBits[at_ / 6]) >> (5 - at_ % 6) & 1);
    }
    return value;
  }

 private:
  static uint32_t Digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : 63;
  }

  std::size_t at_ = 0;
};

// Reads the next polynomial and its numbers, and computes the others by the recurrence of the
// polynomial (Joe and Kuo, formula 2).
SobolDirections ReadDirections(int degree, BitReader& bits) {
  const uint32_t inner = bits.Next(degree - 1);
  SobolDirections m = {1};
  for (int k = 1; k < degree; ++k) m[k] = bits.Next(k) << 1 | 1;
  for (int k = degree; k < kSobolDigits; ++k) {
    m[k] = m[k - degree] ^ m[k - degree] << degree;
    for (int i = 1; i < degree; ++i) {
      if (inner >> (degree - 1 - i) & 1) m[k] ^= m[k - i] << i;
    }
  }
  return m;
}

std::array<SobolDirections, kMaxSobolDimensions> ReadAll() {
  std::array<SobolDirections, kMaxSobolDimensions> all;
  all[0].fill(1);
  BitReader bits;
  int dimension = 1, degree = 0;
  for (const int count : kPolynomials) {
    ++degree;
    for (int i = 0; i < count; ++i) all[dimension++] = ReadDirections(degree, bits);
  }
  return all;
}

}  // namespace

const SobolDirections& DirectionsOf(int dimension) {
  static const auto& all = *new const std::array<SobolDirections, kMaxSobolDimensions>(ReadAll());
  return all[dimension];
}

}  // namespace penstock
