"""What the theory promises, computed."""

from gind.certify.certificate import Certificate, certificate
from gind.certify.label import proven_labels
from gind.certify.model import ModelCertificate, certify_model
from gind.certify.objective import energy
from gind.certify.prox import Prox, prox

__all__ = ["Certificate", "ModelCertificate", "Prox", "certificate", "certify_model", "energy", "proven_labels", "prox"]
