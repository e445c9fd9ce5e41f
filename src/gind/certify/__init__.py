"""What the theory promises, computed."""

from gind.certify.certificate import Certificate, certificate
from gind.certify.objective import energy
from gind.certify.prox import Prox, prox

__all__ = ["Certificate", "Prox", "certificate", "energy", "prox"]
